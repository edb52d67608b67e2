package stage2

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"sandboxd/internal/landlock"
	"sandboxd/internal/stage2/spec"
	"sandboxd/internal/testenv"
)

// answer executes a command under a filter that answers system calls itself, 0 for a
// success that never was: NUMBER=ERRNO, or NUMBER=ERRNO@ARGUMENT:VALUE, counted from 0.
func answer(args []string) {
	load := func(offset uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
	}
	equals := func(k uint32, jf uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: k, Jf: jf}
	}
	number := func(s string) uint32 { n, _ := strconv.ParseUint(s, 10, 32); return uint32(n) }
	var program []unix.SockFilter
	for args[0] != "--" {
		call, errno, _ := strings.Cut(args[0], "=")
		errno, which, only := strings.Cut(errno, "@")
		program = append(program, load(0))
		if only {
			i, value, _ := strings.Cut(which, ":")
			program = append(program, equals(number(call), 3), load(16+8*number(i)), equals(number(value), 1))
		} else {
			program = append(program, equals(number(call), 1))
		}
		program = append(program, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | number(errno)})
		args = args[1:]
	}
	program = append(program, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW})
	prog := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	runtime.LockOSThread() // no_new_privs is the thread's, and the filter needs it
	_ = unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
	_, _, err := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&prog)))
	if err == 0 {
		err = syscall.Exec(args[1], args[1:], os.Environ()).(syscall.Errno)
	}
	fmt.Fprintln(os.Stderr, "cannot answer:", err)
	os.Exit(99)
}

// A filter around stage 2 that answers a call without the kernel makes no claim true: each
// one has another witness. What the kernel seems to lack may be hidden by it.
func TestAnswersOfAFilter(t *testing.T) {
	if abi, err := landlock.ABI(); abi < 1 {
		testenv.Skip(t, "landlock", err.Error())
	}
	setFilter := fmt.Sprintf("%d=0@0:%d", unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER)
	for _, test := range []struct {
		name, answer, step, msg string
		report                  func(*testing.T, spec.Report, ran)
	}{
		{"none", "", "", "", func(t *testing.T, r spec.Report, got ran) {
			if r.LandlockABI == 0 || !r.SeccompHardening || !r.RlimitFsize || len(r.Skips) > 0 {
				t.Errorf("the control: %+v", r)
			}
		}},
		{"landlock_restrict_self", fmt.Sprintf("%d=0", unix.SYS_LANDLOCK_RESTRICT_SELF), spec.StepLandlock, "cannot have been", nil},
		{"prlimit64", fmt.Sprintf("%d=0@1:%d", unix.SYS_PRLIMIT64, unix.RLIMIT_FSIZE), spec.StepRlimit, "does not show", nil},
		{"prlimit64, denied", fmt.Sprintf("%d=1@1:%d", unix.SYS_PRLIMIT64, unix.RLIMIT_FSIZE), spec.StepRlimit, "(EPERM)", nil},
		{"setsid", fmt.Sprintf("%d=0", unix.SYS_SETSID), spec.StepSession, "does not show", nil},
		{"seccomp", setFilter, spec.StepSeccomp, "do not show", nil},
		{"close_range", fmt.Sprintf("%d=0", unix.SYS_CLOSE_RANGE), "", "", func(t *testing.T, r spec.Report, got ran) {
			if got.out != "0\n1\n2\n3\n" { // 3 is the directory that ls reads
				t.Errorf("the command has the descriptors %q", got.out)
			}
		}},
		{"landlock_create_ruleset", fmt.Sprintf("%d=%d", unix.SYS_LANDLOCK_CREATE_RULESET, unix.ENOSYS), "", "", func(t *testing.T, r spec.Report, _ ran) {
			if len(r.Skips) != 1 || r.Skips[0].Tag != "landlock" || !strings.Contains(r.Skips[0].Reason, "(ENOSYS)") || !strings.Contains(r.Skips[0].Reason, "filter that sandboxd was started under") {
				t.Errorf("skips %+v", r.Skips)
			}
		}},
		{"seccomp, denied", fmt.Sprintf("%d=1", unix.SYS_SECCOMP), "", "", func(t *testing.T, r spec.Report, _ ran) {
			if r.SeccompHardening || r.SeccompNet || len(r.Skips) != 2 || !strings.Contains(r.Skips[0].Reason, "filter that sandboxd was started under") {
				t.Errorf("%+v", r)
			}
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			// Without bubblewrap around it stage 2 leads a session from its start.
			w := newWorld(t, testenv.Ordinary(t), test.step == spec.StepSession)
			if test.answer != "" {
				w.limits = `set -- ` + w.image + ` --answer ` + test.answer + ` -- "$@"`
			}
			s := w.spec("ls", "/proc/self/fd")
			s.FsizeBytes = 1 << 20
			r := w.run(t, s.Append(nil))
			if test.report != nil {
				test.report(t, r.report(t), r)
				return
			}
			if f := r.failure(t); f.Step != test.step || !strings.Contains(f.Msg, test.msg) {
				t.Errorf("%+v", f)
			}
		})
	}
}

// With every capability, as root has them in a namespace of its own, stage 2 gives up the
// one that raises limits, and no other: no_new_privs keeps execve from giving it back.
func TestRightToRaiseIsGivenUp(t *testing.T) {
	w := newWorld(t, testenv.Me(), false)
	unshare := testenv.Tool(t, "unshare")
	if out, err := exec.Command(unshare, "-Ur", "true").CombinedOutput(); err != nil {
		testenv.Skip(t, "userns", string(out))
	}
	w.limits = `set -- ` + unshare + ` -Ur "$@"`
	r := w.run(t, w.spec("grep", "^Cap", "/proc/self/status").Append(nil))
	r.report(t)
	for _, set := range []string{"CapPrm", "CapEff", "CapInh"} {
		caps, err := strconv.ParseUint(statusValue(t, r.out, set), 16, 64)
		if err != nil || caps&(1<<unix.CAP_SYS_RESOURCE) != 0 || set != "CapInh" && caps&(1<<unix.CAP_SYS_ADMIN) == 0 {
			t.Errorf("%s: %x, %v", set, caps, err)
		}
	}
}

// Without a jail a command of root's could raise what was lowered: it has lost that right,
// and nothing gives it back.
func TestNobodyRaisesALimit(t *testing.T) {
	eachWorld(t, func(t *testing.T, w world) {
		s := w.spec("sh", "-c", "ulimit -f unlimited && echo raised; head -c 100000 /dev/zero >"+w.dir+"/f; true")
		s.FsizeBytes = 4096
		r := w.run(t, s.Append(nil))
		if report := r.report(t); !report.RlimitFsize || report.FsizeInherited != 0 {
			t.Errorf("report %+v", report)
		}
		if st, err := os.Stat(filepath.Join(w.dir, "f")); err != nil || st.Size() != 4096 || r.out != "" {
			t.Errorf("the file: %v, %v; %q", st, err, r.out)
		}
	})
}
