package main

import (
	"fmt"

	seccomp "github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/net/bpf"
)

// Actions with their errno (linux/seccomp.h: the low 16 bits of the return value).
// Linux's numbers, whatever system the generator runs on.
const (
	allow  = seccomp.ActionAllow
	eperm  = seccomp.ActionErrno | 1
	enosys = seccomp.ActionErrno | 38
)

const (
	afUnix  = 1      // bits/socket.h
	tiocsti = 0x5412 // asm-generic/ioctls.h: types a character into a terminal
	// tioclinux's subcommand 3 pastes a virtual console's selection as input
	// (CVE-2023-1523).
	tioclinux = 0x541C
)

// Offsets in struct seccomp_data (linux/seccomp.h), little-endian.
const (
	offNumber  = 0
	offArch    = 4
	offArg1Low = 16 + 8
)

// x32Bit marks the numbers of the x32 ABI (__X32_SYSCALL_BIT, asm/unistd.h), which
// share the audit architecture of x86-64.
const x32Bit = 0x4000_0000

// target is one architecture that programs are made for.
type target struct {
	goarch string
	info   *arch.Info
}

var targets = []target{
	{"amd64", arch.X86_64},
	{"arm64", arch.AARCH64},
}

var hardening = []string{
	"add_key", "keyctl", "request_key",
	"bpf", "perf_event_open", "userfaultfd",
	"kexec_load", "kexec_file_load",
	"init_module", "finit_module", "delete_module",
}

// trace keeps the command off bubblewrap's init where Landlock does not.
var trace = []string{"ptrace", "process_vm_readv", "process_vm_writev", "pidfd_getfd"}

func hardeningPolicy(extra ...string) seccomp.Policy {
	names := append(append([]string{}, hardening...), extra...)
	return seccomp.Policy{
		DefaultAction: allow,
		Syscalls:      []seccomp.SyscallGroup{{Names: names, Action: eperm}},
	}
}

func netPolicy() seccomp.Policy {
	// The library compares 64 bits, the kernel uses an int: a domain with a bit above
	// 32 set is denied although the kernel would take it for AF_UNIX, which is safe.
	notUnix := seccomp.ArgumentConditions{{Argument: 0, Operation: seccomp.NotEqual, Value: afUnix}}
	return seccomp.Policy{
		DefaultAction: allow,
		Syscalls: []seccomp.SyscallGroup{
			{
				NamesWithCondtions: []seccomp.NameWithConditions{
					{Name: "socket", Conditions: notUnix},
					{Name: "socketpair", Conditions: notUnix},
				},
				Action: eperm,
			},
		},
	}
}

// guard is written out: the library lets a foreign architecture pass and can only
// compare whole 64-bit arguments, while the kernel takes an ioctl's command from
// the low 32 bits: 1<<32|TIOCSTI would slip through.
func guard(t target) ([]bpf.Instruction, error) {
	ioctl, ok := t.info.SyscallNames["ioctl"]
	if !ok {
		return nil, fmt.Errorf("no ioctl on %s", t.goarch)
	}
	program := []bpf.Instruction{
		bpf.LoadAbsolute{Off: offArch, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(t.info.ID), SkipTrue: 1},
		bpf.RetConstant{Val: uint32(enosys)},
		bpf.LoadAbsolute{Off: offNumber, Size: 4},
	}
	if t.info == arch.X86_64 {
		program = append(program,
			bpf.JumpIf{Cond: bpf.JumpGreaterOrEqual, Val: x32Bit, SkipFalse: 1},
			bpf.RetConstant{Val: uint32(enosys)})
	}
	return append(program,
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(ioctl), SkipFalse: 3},
		bpf.LoadAbsolute{Off: offArg1Low, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: tiocsti, SkipTrue: 2},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: tioclinux, SkipTrue: 1},
		bpf.RetConstant{Val: uint32(allow)},
		bpf.RetConstant{Val: uint32(eperm)}), nil
}

type namedPolicy struct {
	name   string
	policy seccomp.Policy
}

func policies() []namedPolicy {
	return []namedPolicy{
		{"hardening", hardeningPolicy()},
		{"hardeningTrace", hardeningPolicy(trace...)},
		{"net", netPolicy()},
	}
}
