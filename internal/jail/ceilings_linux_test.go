package jail

import (
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"sandboxd/internal/testenv"
)

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
