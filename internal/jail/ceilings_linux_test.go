package jail

import (
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"sandboxd/internal/plan"
	"sandboxd/internal/roots"
	"sandboxd/internal/testenv"
)

// A cgroup that the command can write to holds it only as long as it likes.
func TestLooseCgroup(t *testing.T) {
	view := func(ops ...plan.Op) plan.Plan {
		return plan.Plan{Ops: append([]plan.Op{{Path: "/", Class: plan.RootTmpfs}}, ops...)}
	}
	jail, none := bounds{jailed: true, landlock: true}, bounds{landlock: true}
	rw := func(path string) plan.Op { return plan.Op{Path: path, Class: plan.Writable} }
	for _, c := range []struct {
		name   string
		plan   plan.Plan
		bounds bounds
		loose  bool
	}{
		{"not in the view", view(), jail, false},
		{"the host, readable", view(plan.Op{Path: "/", Class: plan.Readable}), jail, false},
		{"the host, writable", view(rw("/")), jail, true},
		{"a root above it", view(rw("/sys/fs")), jail, true},
		{"read-only again", view(rw("/sys/fs"), plan.Op{Path: "/sys/fs/cgroup", Class: plan.Readable}), jail, false},
		{"no jail and no Landlock", view(), bounds{}, true},
		{"no jail", view(rw("/home")), none, false},
		{"no jail, the host writable", view(rw("/"), plan.Op{Path: "/sys", Class: plan.Readable}), none, true},
		{"no jail, the hierarchy", view(rw("/sys/fs/cgroup")), none, true},
		{"another cgroup, writable", view(rw("/sys/fs/cgroup/other")), jail, true},
		{"another mount of the hierarchy", view(rw("/srv/cgroups/other")), jail, true},
		{"a mount of it", view(plan.Op{Path: "/srv/cgroups", Class: plan.MountRW}), jail, true},
		{"something mounted over it", view(rw("/srv/cgroups/tmp/x")), jail, false},
		{"read-only inside a root", view(rw("/srv"), plan.Op{Path: "/srv/cgroups", Class: plan.Readable}), jail, false},
		{"user namespaces", view(), bounds{jailed: true, landlock: true, nested: true}, false},
		{"user namespaces without Landlock", view(), bounds{jailed: true, nested: true}, true},
		{"no Landlock", view(), bounds{jailed: true}, false},
	} {
		c.bounds.mounts = []roots.Mount{{Point: "/", FSType: "ext4"}, {Point: "/sys", FSType: "sysfs"}, {Point: "/sys/fs/cgroup", FSType: "cgroup2"},
			{Point: "/srv/cgroups", FSType: "cgroup2"}, {Point: "/srv/cgroups/tmp", FSType: "tmpfs"}}
		if why := loose(c.plan, c.bounds); (why != "") != c.loose {
			t.Errorf("%s: %q", c.name, why)
		}
	}
}

// What left every process group and has another parent is still in the cgroup: a KILL
// reaches it there, and so does the clean-up where no namespace's init does it.
func TestKillTakesTheCgroup(t *testing.T) {
	for name, end := range map[string]func(*supervision){"kill": (*supervision).kill, "clean-up": func(s *supervision) { s.tearDown(false) }} {
		t.Run(name, func(t *testing.T) {
			stray := exec.Command("/bin/sleep", "600")
			stray.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
			if err := stray.Start(); err != nil {
				t.Fatal(err)
			}
			forks.Lock() // hides it from the walk, which would find it as well
			forks.known[stray.Process.Pid] = &process{}
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
