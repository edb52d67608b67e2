package main

import (
	"fmt"
	"math"

	seccomp "github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/net/bpf"
)

// Bits and numbers of arguments; they are the same on every target.
const (
	sIsuid     = 0o4000     // linux/stat.h
	oCreat     = 0o100      // asm-generic/fcntl.h
	oTmpfile   = 0o20000000 // the bit of O_TMPFILE that is its own
	rlimitCore = 4          // asm-generic/resource.h
	offArgs    = 16         // struct seccomp_data
	allowed    = uint32(allow)
	pretended  = uint32(seccomp.ActionErrno) // gives 0 and does nothing
)

// arg is the offset of the low half of an argument, little-endian.
func arg(n int) uint32 { return uint32(offArgs + 8*n) }

// left is a rule of the program against what a command leaves on the host, or has the
// host do when it dies. A call that an architecture lacks is passed over.
type left struct {
	names []string
	block []bpf.Instruction
}

// lefts: a set-user-ID file lends the caller's rights to every user of the host, and
// what stands in its way inside (no_new_privs) is not there outside. Two calls can give
// the bit behind a pointer: they are answered as on a kernel without them. So is clone3.
//
// clone3 can start a process in any cgroup whose directory the caller may name, by a
// descriptor that neither a read-only mount nor Landlock minds (O_PATH); the cgroup's file
// modes are the caller's own. So a command would leave its ceilings. clone cannot.
//
// A core limit of 1 is the one at which the kernel starts no handler of core_pattern
// (coredump.c); so it must not be lowered to 0 either. Programs that ask for that are
// told that it was done: they would not go on otherwise, and no core is written.
var lefts = []left{
	{[]string{"chmod", "fchmod", "creat", "mknod"}, suid(1)},
	{[]string{"fchmodat", "fchmodat2", "mknodat"}, suid(2)},
	{[]string{"open"}, created(1)},
	{[]string{"openat"}, created(2)},
	{[]string{"openat2", "io_uring_setup", "clone3"}, []bpf.Instruction{bpf.RetConstant{Val: uint32(enosys)}}},
	{[]string{"setrlimit"}, []bpf.Instruction{
		bpf.LoadAbsolute{Off: arg(0), Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: rlimitCore, SkipTrue: 1},
		bpf.RetConstant{Val: allowed},
		bpf.RetConstant{Val: pretended},
	}},
	{[]string{"prlimit64"}, []bpf.Instruction{
		bpf.LoadAbsolute{Off: arg(1), Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: rlimitCore, SkipTrue: 1},
		bpf.RetConstant{Val: allowed},
		bpf.LoadAbsolute{Off: arg(2), Size: 4}, // the new limit's address
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: 0, SkipTrue: 3},
		bpf.LoadAbsolute{Off: arg(2) + 4, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: 0, SkipTrue: 1},
		bpf.RetConstant{Val: allowed},
		// The old one's: nothing would be written there, so it cannot be pretended.
		bpf.LoadAbsolute{Off: arg(3), Size: 4},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: 0, SkipTrue: 3},
		bpf.LoadAbsolute{Off: arg(3) + 4, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: 0, SkipTrue: 1},
		bpf.RetConstant{Val: pretended},
		bpf.RetConstant{Val: uint32(eperm)},
	}},
}

// suid refuses the bit in a mode.
func suid(mode int) []bpf.Instruction {
	return []bpf.Instruction{
		bpf.LoadAbsolute{Off: arg(mode), Size: 4},
		bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: sIsuid, SkipTrue: 1},
		bpf.RetConstant{Val: allowed},
		bpf.RetConstant{Val: uint32(eperm)},
	}
}

// created does so where the flags make the call look at its mode.
func created(flags int) []bpf.Instruction {
	return append([]bpf.Instruction{
		bpf.LoadAbsolute{Off: arg(flags), Size: 4},
		bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: oCreat | oTmpfile, SkipTrue: 1},
		bpf.RetConstant{Val: allowed},
	}, suid(flags+1)...)
}

// leaving is the program. Written out: the library tests no bits. Foreign calls have
// met the guard.
func leaving(t target) ([]bpf.Instruction, error) {
	var numbers, starts []uint32
	var blocks []bpf.Instruction
	for _, rule := range lefts {
		known := false
		for _, name := range rule.names {
			number, ok := t.info.SyscallNames[name]
			if !ok && t.info == arch.X86_64 {
				return nil, fmt.Errorf("no system call %q on %s", name, t.goarch)
			}
			if ok {
				known = true
				numbers, starts = append(numbers, uint32(number)), append(starts, uint32(len(blocks)))
			}
		}
		if known {
			blocks = append(blocks, rule.block...)
		}
	}
	n := len(numbers)
	if 1+n+len(blocks) > math.MaxUint8 {
		return nil, fmt.Errorf("a program of %d instructions needs long jumps", n+len(blocks))
	}
	program := []bpf.Instruction{
		bpf.LoadAbsolute{Off: offArch, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: uint32(t.info.ID), SkipTrue: uint8(1 + n)},
		bpf.LoadAbsolute{Off: offNumber, Size: 4},
	}
	for i, number := range numbers { // the rest of this list and its end lie between
		program = append(program, bpf.JumpIf{Cond: bpf.JumpEqual, Val: number, SkipTrue: uint8(n - i + int(starts[i]))})
	}
	program = append(program, bpf.RetConstant{Val: allowed})
	return append(program, blocks...), nil
}
