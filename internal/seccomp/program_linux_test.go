package seccomp

import (
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"sandboxd/internal/stage2/spec"
)

// Audit architectures (linux/audit.h).
const (
	auditX86_64  = 0xC000003E
	auditI386    = 0x40000003
	auditAArch64 = 0xC00000B7
	auditARM     = 0x40000028
)

const (
	retAllow = 0x7fff0000
	retEPERM = 0x00050001
	// ENOSYS is 38 on both architectures.
	retENOSYS = 0x00050026
	// An errno of 0: the call gives 0 and does nothing.
	retPretend = 0x00050000
)

// kernel is what the documents of each architecture say, written by hand and not
// taken from the generator.
type kernel struct {
	audit  uint32
	x32    bool
	number map[string]uint32
}

var kernels = map[string]kernel{
	"amd64": {auditX86_64, true, map[string]uint32{
		"read": 0, "ioctl": 16, "socket": 41, "connect": 42, "socketpair": 53, "clone": 56, "execve": 59,
		"ptrace": 101, "mount": 165, "init_module": 175, "delete_module": 176, "kexec_load": 246,
		"add_key": 248, "request_key": 249, "keyctl": 250, "unshare": 272, "perf_event_open": 298,
		"process_vm_readv": 310, "process_vm_writev": 311, "finit_module": 313, "kexec_file_load": 320,
		"bpf": 321, "userfaultfd": 323, "io_uring_setup": 425, "io_uring_enter": 426, "pidfd_open": 434,
		"clone3": 435, "pidfd_getfd": 438,
		"open": 2, "creat": 85, "chmod": 90, "fchmod": 91, "mknod": 133, "setrlimit": 160, "openat": 257, "mknodat": 259,
		"fchmodat": 268, "prlimit64": 302, "openat2": 437, "fchmodat2": 452}},
	"arm64": {auditAArch64, false, map[string]uint32{
		"read": 63, "ioctl": 29, "socket": 198, "connect": 203, "socketpair": 199, "clone": 220, "execve": 221,
		"ptrace": 117, "mount": 40, "init_module": 105, "delete_module": 106, "kexec_load": 104,
		"add_key": 217, "request_key": 218, "keyctl": 219, "unshare": 97, "perf_event_open": 241,
		"process_vm_readv": 270, "process_vm_writev": 271, "finit_module": 273, "kexec_file_load": 294,
		"bpf": 280, "userfaultfd": 282, "io_uring_setup": 425, "io_uring_enter": 426, "pidfd_open": 434,
		"clone3": 435, "pidfd_getfd": 438,
		"mknodat": 33, "fchmod": 52, "fchmodat": 53, "openat": 56, "setrlimit": 164, "prlimit64": 261, "openat2": 437, "fchmodat2": 452}},
}

var denials = map[string][]string{
	"hardening": {"add_key", "keyctl", "request_key", "bpf", "perf_event_open", "userfaultfd", "kexec_load",
		"kexec_file_load", "init_module", "finit_module", "delete_module"},
	"trace": {"ptrace", "process_vm_readv", "process_vm_writev", "pidfd_getfd"},
}

// data is struct seccomp_data (linux/seccomp.h).
type data struct {
	nr   uint32
	arch uint32
	ip   uint64
	args [6]uint64
}

func (d data) word(off uint32) uint32 {
	words := [16]uint32{d.nr, d.arch, uint32(d.ip), uint32(d.ip >> 32)}
	for i, a := range d.args {
		words[4+2*i], words[5+2*i] = uint32(a), uint32(a>>32)
	}
	if off%4 != 0 {
		panic("unaligned load") // the kernel refuses such a program
	}
	return words[off/4]
}

// run evaluates a program as the kernel does, for the instructions that the tables
// use; any other fails the test.
func run(t rapid.TB, program []Instruction, d data) uint32 {
	var a uint32
	for pc := 0; pc < len(program); pc++ {
		i := program[pc]
		taken := false
		switch i.Code {
		case unix.BPF_LD | unix.BPF_W | unix.BPF_ABS:
			a = d.word(i.K)
			continue
		case unix.BPF_RET | unix.BPF_K:
			return i.K
		case unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K:
			taken = a == i.K
		case unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K:
			taken = a >= i.K
		case unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K:
			taken = a&i.K != 0
		default:
			t.Fatalf("instruction %d: unexpected code %#x", pc, i.Code)
		}
		if taken {
			pc += int(i.Jt)
		} else {
			pc += int(i.Jf)
		}
	}
	t.Fatalf("the program ran off its end")
	return 0
}

// decide gives the strictest answer of all programs: the lowest action, and for
// equal ones that of the program installed last (seccomp(2)).
func decide(t rapid.TB, programs [][]Instruction, d data) uint32 {
	answer := uint32(retAllow)
	for i := len(programs) - 1; i >= 0; i-- {
		if r := run(t, programs[i], d); r&0xffff0000 < answer&0xffff0000 {
			answer = r
		}
	}
	return answer
}

// model says, without any BPF, what has to happen.
func (k kernel) model(o spec.Seccomp, d data) uint32 {
	is := func(names ...string) bool {
		for _, name := range names {
			if nr, ok := k.number[name]; ok && nr == d.nr {
				return true
			}
		}
		return false
	}
	switch {
	case d.arch != k.audit, k.x32 && d.nr >= 0x40000000:
		return retENOSYS
	case is("ioctl") && (uint32(d.args[1]) == 0x5412 || uint32(d.args[1]) == 0x541C):
		return retEPERM
	case is(denials["hardening"]...), o.DenyTrace && is(denials["trace"]...):
		return retEPERM
	case o.DenyNet && is("socket", "socketpair") && d.args[0] != 1:
		return retEPERM
	case is("io_uring_setup", "openat2", "clone3"):
		return retENOSYS
	}
	return k.left(is, d.args)
}

const suidBit = 0o4000

// left says what becomes of a call that could leave a set-user-ID file, or have a crash
// start a program of the host.
func (k kernel) left(is func(...string) bool, a [6]uint64) uint32 {
	const creating = 0o100 | 0o20000000 // O_CREAT, and what O_TMPFILE has for itself
	switch {
	case is("chmod", "fchmod", "creat", "mknod") && a[1]&suidBit != 0,
		is("fchmodat", "fchmodat2", "mknodat") && a[2]&suidBit != 0,
		is("open") && a[1]&creating != 0 && a[2]&suidBit != 0,
		is("openat") && a[2]&creating != 0 && a[3]&suidBit != 0:
		return retEPERM
	case is("setrlimit") && uint32(a[0]) == 4:
		return retPretend
	case is("prlimit64") && uint32(a[1]) == 4 && a[2] != 0:
		if a[3] != 0 {
			return retEPERM
		}
		return retPretend
	}
	return retAllow
}

var options = []spec.Seccomp{{}, {DenyNet: true}, {DenyTrace: true}, {DenyNet: true, DenyTrace: true}}

// Every number near one that a rule names, with every argument that matters, of
// every architecture.
func TestDecisions(t *testing.T) {
	var arguments [][6]uint64
	for _, arg := range []uint64{0, 1, 2, 4, 10, 16, 17, 40, 41, 53, 425, 0x5411, 0x5412, 0x5413, 0x541B, 0x541C, 0x541D, 0o4755, 0o2755,
		1 << 32, 1<<32 | 1, 1<<32 | 2, 1<<32 | 4, 1<<32 | 0x5412, 1<<63 | 0x541C, 1<<32 | 0x5413, 0xffffffff, 1<<64 - 1} {
		arguments = append(arguments, [6]uint64{arg, arg, arg, arg})
	}
	for _, flags := range []uint64{0, 0o100, 0o20000000, 0o200000, 1 << 40} { // in front of a mode
		arguments = append(arguments, [6]uint64{9, flags, 0o4755}, [6]uint64{9, 9, flags, 0o4000}, [6]uint64{9, flags, 0o777, 0o2777})
	}
	for _, limits := range [][2]uint64{{0, 0}, {0, 1}, {1, 0}, {1 << 40, 0}, {1 << 40, 1 << 40}, {1, 1}} { // new, old
		arguments = append(arguments, [6]uint64{4, 4, limits[0], limits[1]}, [6]uint64{7, 7, limits[0], limits[1]})
	}
	for arch, k := range kernels {
		seen := map[uint32]int{}
		for _, o := range options {
			programs := Programs(arch, o)
			for _, audit := range []uint32{auditX86_64, auditI386, auditAArch64, auditARM, 0, 0xffffffff} {
				for _, base := range []uint32{0, 0x40000000, 0x80000000, 0xffffff00} {
					for nr := uint32(0); nr < 480; nr++ {
						for _, args := range arguments {
							d := data{nr: base + nr, arch: audit, args: args}
							got, want := decide(t, programs, d), k.model(o, d)
							if got != want {
								t.Fatalf("%s %+v: call %#x of %#x (%#x): got %#x, want %#x", arch, o, d.nr, audit, args, got, want)
							}
							seen[got]++
						}
					}
				}
			}
		}
		for _, answer := range []uint32{retAllow, retEPERM, retENOSYS, retPretend} {
			if seen[answer] == 0 {
				t.Errorf("%s: no call was answered with %#x", arch, answer)
			}
		}
	}
}

func TestDecisionsOfRandomCalls(t *testing.T) {
	for arch, k := range kernels {
		t.Run(arch, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				o := rapid.SampledFrom(options).Draw(t, "options")
				d := data{
					nr:   rapid.OneOf(rapid.Uint32(), rapid.Uint32Max(500)).Draw(t, "nr"),
					arch: rapid.OneOf(rapid.Just(k.audit), rapid.Uint32()).Draw(t, "arch"),
					ip:   rapid.Uint64().Draw(t, "ip"),
				}
				for i := range d.args {
					d.args[i] = rapid.OneOf(rapid.Uint64(), rapid.Uint64Max(64), rapid.SampledFrom([]uint64{0o4755, 0o100, 4})).Draw(t, "arg")
				}
				if got, want := decide(t, Programs(arch, o), d), k.model(o, d); got != want {
					t.Fatalf("%+v: got %#x, want %#x", d, got, want)
				}
			})
		})
	}
}

// The policy leaves process creation alone, but for a birth in another cgroup: glibc
// falls back from clone3 to clone on ENOSYS and on nothing else.
func TestCallsThatStayAllowed(t *testing.T) {
	for arch, k := range kernels {
		for _, o := range options {
			if got := decide(t, Programs(arch, o), data{nr: k.number["clone3"], arch: k.audit}); got != retENOSYS {
				t.Errorf("%s: clone3 gives %#x", arch, got)
			}
		}
		for _, name := range []string{"clone", "unshare", "mount", "execve", "connect", "pidfd_open", "read"} {
			for _, o := range options {
				if got := decide(t, Programs(arch, o), data{nr: k.number[name], arch: k.audit}); got != retAllow {
					t.Errorf("%s: %s gives %#x", arch, name, got)
				}
			}
		}
	}
}

// Each program does its own part: taken away, its calls pass.
func TestEachProgramMatters(t *testing.T) {
	for arch, k := range kernels {
		all := Programs(arch, spec.Seccomp{DenyNet: true, DenyTrace: true})
		probes := []data{ // by position
			{nr: k.number["read"], arch: auditI386},
			{nr: k.number["fchmod"], arch: k.audit, args: [6]uint64{3, 0o4755}},
			{nr: k.number["keyctl"], arch: k.audit},
			{nr: k.number["socket"], arch: k.audit, args: [6]uint64{2}},
		}
		for i, d := range probes {
			if decide(t, all, d) == retAllow {
				t.Errorf("%s: probe %d is allowed", arch, i)
			}
			without := append(append([][]Instruction{}, all[:i]...), all[i+1:]...)
			if got := decide(t, without, d); got != retAllow {
				t.Errorf("%s: probe %d without its program gives %#x: it proves nothing", arch, i, got)
			}
		}
	}
}

func TestUnknownArchitecture(t *testing.T) {
	if p := Programs("riscv64", spec.Seccomp{}); p != nil {
		t.Fatalf("got %d programs", len(p))
	}
	if n := len(Programs("amd64", spec.Seccomp{DenyNet: true})); n != 4 {
		t.Fatalf("got %d programs for amd64", n)
	}
}

// load hands the slice to the kernel as it is.
func TestInstructionLayout(t *testing.T) {
	var i Instruction
	var k unix.SockFilter
	if unsafe.Sizeof(i) != unsafe.Sizeof(k) || unsafe.Offsetof(i.Jt) != unsafe.Offsetof(k.Jt) ||
		unsafe.Offsetof(i.Jf) != unsafe.Offsetof(k.Jf) || unsafe.Offsetof(i.K) != unsafe.Offsetof(k.K) {
		t.Fatal("the layout is not that of struct sock_filter")
	}
}
