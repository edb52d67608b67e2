package jail

import (
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"sandboxd/internal/plan"
	"sandboxd/internal/testenv"
)

// A cgroup that the command can write to holds it only as long as it likes.
func TestLooseCgroup(t *testing.T) {
	const base = "/sys/fs/cgroup/base"
	view := func(ops ...plan.Op) plan.Plan {
		return plan.Plan{Ops: append([]plan.Op{{Path: "/", Class: plan.RootTmpfs}}, ops...)}
	}
	for _, c := range []struct {
		name    string
		plan    plan.Plan
		bounded bool
		loose   bool
	}{
		{"not in the view", view(), true, false},
		{"the host, readable", view(plan.Op{Path: "/", Class: plan.Readable}), true, false},
		{"the host, writable", view(plan.Op{Path: "/", Class: plan.Writable}), true, true},
		{"a root above it", view(plan.Op{Path: "/sys/fs", Class: plan.Writable}), true, true},
		{"read-only again", view(plan.Op{Path: "/sys/fs", Class: plan.Writable}, plan.Op{Path: base, Class: plan.Readable}), true, false},
		{"no jail and no Landlock", view(), false, true},
	} {
		if why := loose(c.plan, base+"/exec-1-2", c.bounded); (why != "") != c.loose {
			t.Errorf("%s: %q", c.name, why)
		}
	}
}

// What left every process group and has another parent is still in the cgroup: a KILL
// reaches it there, and so does the clean-up where no namespace's init does it.
func TestKillTakesTheCgroup(t *testing.T) {
	for name, end := range map[string]func(*supervision){"kill": (*supervision).kill, "clean-up": (*supervision).tearDown} {
		t.Run(name, func(t *testing.T) {
			stray := exec.Command("/bin/sleep", "600")
			stray.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
			if err := stray.Start(); err != nil {
				t.Fatal(err)
			}
			forks.Lock() // hides it from the walk, which would find it as well
			forks.known[stray.Process.Pid] = true
			forks.Unlock()
			defer func() {
				forks.Lock()
				delete(forks.known, stray.Process.Pid)
				forks.Unlock()
			}()
			_, s, _ := newFake()
			s.p.jailed = false
			fd, err := unix.PidfdOpen(stray.Process.Pid, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer unix.Close(fd)
			end(s)
			if exited(fd) {
				t.Error("without a cgroup it is gone too")
			}
			s.group = func() { _ = stray.Process.Kill() }
			end(s)
			if ev, _ := pollOnce(fd, unix.POLLIN, int(testenv.Patience.Milliseconds())); ev == 0 {
				t.Error("it lives")
			}
			_ = stray.Process.Kill()
			_ = stray.Wait()
		})
	}
}
