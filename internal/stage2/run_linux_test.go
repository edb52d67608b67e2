package stage2

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sandboxd/internal/landlock"
	"sandboxd/internal/stage2/spec"
)

// statusValue is one line of a /proc/self/status that a command printed.
func statusValue(t *testing.T, status, key string) string {
	t.Helper()
	for line := range strings.Lines(status) {
		if k, v, ok := strings.Cut(line, ":"); ok && k == key {
			return strings.TrimSpace(v)
		}
	}
	t.Fatalf("no %s in %q", key, status)
	return ""
}

func TestCommandSeesExactlyItsOwn(t *testing.T) {
	eachWorld(t, func(t *testing.T, w world) {
		s := w.spec(w.image, "--payload", "x\ny", "\xff")
		s.Env = []string{"A=b", "EMPTY=", "LD_PRELOAD="}
		s.Cwd = w.dir
		r := w.run(t, s.Append(nil))
		r.report(t)
		var got seen
		if err := json.Unmarshal([]byte(r.out), &got); err != nil {
			t.Fatalf("%v: %q, %q", err, r.out, r.err)
		}
		if !slices.Equal(got.Argv[:3], s.Argv[:3]) || len(got.Argv) != 4 {
			t.Errorf("argv %q", got.Argv)
		}
		if !slices.Equal(got.Env, s.Env) {
			t.Errorf("env %q", got.Env)
		}
		if got.Cwd != w.dir {
			t.Errorf("cwd %q", got.Cwd)
		}
		if got.Session != got.Pid || got.Group != got.Pid {
			t.Errorf("pid %d in session %d, group %d", got.Pid, got.Session, got.Group)
		}
		if got.Limits["core"] != [2]uint64{1, 1} {
			t.Errorf("core limit %v", got.Limits["core"])
		}
	})
}

// By a shell, because Go's runtime opens descriptors of its own. The control is
// stage 2 itself, which holds more.
func TestNoDescriptorAboveTwo(t *testing.T) {
	eachWorld(t, func(t *testing.T, w world) {
		s := w.spec("sh", "-c", "ls /proc/$$/fd")
		w.limits = "ls /proc/$$/fd >" + w.dir + "/before"
		r := w.run(t, s.Append(nil))
		r.report(t)
		if r.out != "0\n1\n2\n" {
			t.Errorf("descriptors %q, %q", r.out, r.err)
		}
		before, err := os.ReadFile(w.dir + "/before")
		if err != nil || !strings.Contains(string(before), "\n8\n") {
			t.Errorf("stage 2 started with descriptors %q, %v", before, err)
		}
	})
}

func TestReportAgreesWithTheCommandsStatus(t *testing.T) {
	abi, _ := landlock.ABI()
	eachWorld(t, func(t *testing.T, w world) {
		r := w.run(t, w.spec("cat", "/proc/self/status").Append(nil))
		report := r.report(t)
		if got := statusValue(t, r.out, "Seccomp"); got != "2" || report.SeccompMode != 2 {
			t.Errorf("Seccomp %s, reported %d", got, report.SeccompMode)
		}
		if got := statusValue(t, r.out, "Seccomp_filters"); got != fmt.Sprint(report.SeccompFilters) || report.SeccompFilters < 2 {
			t.Errorf("Seccomp_filters %s, reported %d", got, report.SeccompFilters)
		}
		if got := statusValue(t, r.out, "NoNewPrivs"); got != "1" || !report.NoNewPrivs {
			t.Errorf("NoNewPrivs %s, reported %v", got, report.NoNewPrivs)
		}
		if !report.SeccompNet || !report.SeccompHardening {
			t.Errorf("filters: %+v", report)
		}
		if w.jailed {
			for _, key := range []string{"CapEff", "CapPrm", "CapInh", "CapBnd", "CapAmb"} {
				if got := statusValue(t, r.out, key); strings.Trim(got, "0") != "" {
					t.Errorf("%s %s", key, got)
				}
			}
			if len(report.Namespaces) != 7 {
				t.Errorf("namespaces %v", report.Namespaces)
			}
		}
		if (report.LandlockABI > 0) != (abi > 0) || (abi < 6) != (len(report.Skips) > 0) {
			t.Errorf("kernel's Landlock ABI %d, report %+v", abi, report)
		}
	})
}

func TestLandlockHoldsForTheCommand(t *testing.T) {
	abi, err := landlock.ABI()
	if abi < 1 {
		t.Logf("no Landlock: %v", err)
	}
	eachWorld(t, func(t *testing.T, w world) {
		outside := newWorld(t, w.user, false).dir
		w.extra = []string{"--bind", outside, outside} // writable as far as mounts go
		r := w.run(t, w.spec("sh", "-c", "echo in >"+w.dir+"/f; echo out >"+outside+"/f").Append(nil))
		r.report(t)
		if b, err := os.ReadFile(w.dir + "/f"); err != nil || string(b) != "in\n" {
			t.Errorf("the granted write: %q, %v, %q", b, err, r.err)
		}
		_, err := os.Stat(outside + "/f")
		if abi > 0 && err == nil {
			t.Error("a write outside the grants succeeded")
		}
		if abi == 0 && err != nil {
			t.Errorf("without Landlock: %v", err)
		}
	})
}

func TestRlimits(t *testing.T) {
	eachWorld(t, func(t *testing.T, w world) {
		s := w.spec("sh", "-c", "head -c 100000 /dev/zero >"+w.dir+"/f; exec "+w.image+" --payload")
		s.FsizeBytes, s.CPUSeconds = 4096, 1000
		r := w.run(t, s.Append(nil))
		report := r.report(t)
		if !report.RlimitFsize || !report.RlimitCPU {
			t.Errorf("report %+v", report)
		}
		if st, err := os.Stat(w.dir + "/f"); err != nil || st.Size() != 4096 {
			t.Errorf("the file: %v, %v", st, err)
		}
		var got seen
		if err := json.Unmarshal([]byte(r.out), &got); err != nil {
			t.Fatalf("%v: %q %q", err, r.out, r.err)
		}
		want := map[string][2]uint64{"fsize": {4096, 4096}, "cpu": {1000, 1001}, "core": {1, 1}}
		if !reflect.DeepEqual(got.Limits, want) {
			t.Errorf("limits %v", got.Limits)
		}
		r = w.run(t, w.spec(w.image, "--payload").Append(nil))
		if report := r.report(t); report.RlimitFsize || report.RlimitCPU {
			t.Errorf("no ceiling was asked for: %+v", report)
		}
	})
}

// A ceiling of more seconds than the kernel can count is none of few, or of none.
func TestHugeCPUCeiling(t *testing.T) {
	eachWorld(t, func(t *testing.T, w world) {
		for _, n := range []uint64{maxCPUSeconds, 18_446_744_074, 1 << 62, 1<<63 - 1} {
			s := w.spec("sh", "-c", `i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; echo alive; ulimit -t`)
			s.CPUSeconds = n
			r := w.run(t, s.Append(nil))
			if report := r.report(t); !report.RlimitCPU || report.CPUInherited != 0 || r.out != "alive\n18446744072\n" {
				t.Errorf("%d: %q, %v, %+v", n, r.out, r.state, report)
			}
		}
	})
}

// An inherited hard limit below what is asked for holds what was asked for.
func TestStricterHardLimitStays(t *testing.T) {
	eachWorld(t, func(t *testing.T, w world) {
		w.limits = "ulimit -f 2; ulimit -t 100; ulimit -Sn 200" // blocks of 512 bytes, seconds, descriptors
		s := w.spec("sh", "-c", "ulimit -f; ulimit -t; ulimit -Ht; ulimit -Sn")
		s.FsizeBytes, s.CPUSeconds = 1<<40, 200
		r := w.run(t, s.Append(nil))
		if report := r.report(t); !report.RlimitFsize || !report.RlimitCPU || report.FsizeInherited != 1024 || report.CPUInherited != 100 {
			t.Errorf("report %+v", report)
		}
		// The last is RLIMIT_NOFILE as it was before Go's runtime raised it.
		if r.out != "2\n100\n100\n200\n" {
			t.Errorf("limits %q, %q", r.out, r.err)
		}
	})
}

func TestIgnoredAndBlockedSignalsAreReset(t *testing.T) {
	const ignore = "trap '' HUP INT PIPE USR1 TERM CHLD"
	control, err := exec.Command("sh", "-c", ignore+"; exec cat /proc/self/status").Output()
	if err != nil || strings.Trim(statusValue(t, string(control), "SigIgn"), "0") == "" {
		t.Fatalf("the control ignores nothing: %v %q", err, control)
	}
	eachWorld(t, func(t *testing.T, w world) {
		w.limits = ignore
		r := w.run(t, w.spec("cat", "/proc/self/status").Append(nil))
		r.report(t)
		for _, key := range []string{"SigIgn", "SigBlk", "SigCgt"} {
			if got := statusValue(t, r.out, key); strings.Trim(got, "0") != "" {
				t.Errorf("%s %s", key, got)
			}
		}
	})
}

// A dead helper's command does not run, also where everything else went well.
func TestHangUpBeforeExec(t *testing.T) {
	eachWorld(t, func(t *testing.T, w world) {
		marker := filepath.Join(w.dir, "ran")
		s := w.spec("touch", marker).Append(nil)
		w.gone = true
		if r := w.run(t, s); r.out != "" || r.err != "" || r.scaffold != "" {
			t.Errorf("said %q %q %q", r.out, r.err, r.scaffold)
		}
		if _, err := os.Stat(marker); err == nil {
			t.Error("the command ran without its helper")
		}
		w.gone = false
		w.run(t, s).report(t)
		if _, err := os.Stat(marker); err != nil {
			t.Errorf("the command did not run with its helper: %v", err)
		}
	})
}

func TestAllowed(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int{"told": 11, "closed": 10, "told and closed": 11} {
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		if name != "closed" {
			if err := unix.Sendto(pair[0], []byte{spec.Go}, unix.MSG_NOSIGNAL, nil); err != nil {
				t.Fatal(err)
			}
		}
		if name == "told" {
			defer unix.Close(pair[0])
		} else {
			unix.Close(pair[0])
		}
		theirs := os.NewFile(uintptr(pair[1]), "report")
		defer theirs.Close()
		cmd := exec.Command(self, "--allowed")
		cmd.ExtraFiles = []*os.File{theirs, theirs}
		cmd.Run()
		if got := cmd.ProcessState.ExitCode(); got != want {
			t.Errorf("%s: exit %d, want %d", name, got, want)
		}
	}
}

// End of file without a report is what a stage 2 that died leaves.
func TestCrashLeavesNoReport(t *testing.T) {
	eachWorld(t, func(t *testing.T, w world) {
		w.limits = "ulimit -v 60000" // Go's runtime cannot reserve its heap
		r := w.run(t, w.spec("true").Append(nil))
		if len(r.messages) != 0 {
			t.Errorf("fd 4 said %s", show(r.messages))
		}
		if r.scaffold == "" || r.out != "" || r.err != "" {
			t.Errorf("the runtime's last words went to %q, command's streams %q %q", r.scaffold, r.out, r.err)
		}
	})
}

func TestUsage(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(self, "--exec").CombinedOutput()
	if exit, ok := err.(*exec.ExitError); !ok || exit.ExitCode() != exitUsage || !strings.Contains(string(out), "fd 3") {
		t.Errorf("%v %q", err, out)
	}
}
