//go:build linux

package e2e

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sandboxd/internal/testenv"
)

// Without a pid namespace the helper itself finds and kills whoever descends from
// it, also those that fork faster than they can be listed.
func TestDegradedKillsEveryDescendant(t *testing.T) {
	testenv.EachUser(t, func(t *testing.T, u testenv.User) {
		m := mode{"degraded", t, u, testenv.TempDir(t, u)}
		adopt(t)
		c := m.connect(m.policy())
		tag := uniqueSleep()
		t.Cleanup(func() { // where the test fails, its own processes would stay
			for range 100 {
				for _, pid := range tagged(tag) {
					_ = unix.Kill(pid, unix.SIGKILL)
				}
			}
		})
		for i, script := range []string{
			`sleep ` + tag + ` & setsid sleep ` + tag + ` & (setsid sleep ` + tag + ` &) ; (sleep ` + tag + ` &); trap '' TERM`,
			`for i in 1 2 3 4 5 6 7 8 9 10; do setsid sh -c 'trap "" TERM HUP; while :; do sleep ` + tag + `; done' & done`,
			`(setsid sh -c 'while :; do (sleep ` + tag + ` &); sleep 0.01; done' &)`,
			`sh -c 'kill -STOP $$; sleep ` + tag + `' & sleep 0.1`,
		} {
			r := c.sh(uint64(2+i), m.dir, script+"\necho hi")
			if !strings.Contains(r.stdout, "hi\n") {
				t.Errorf("got %q", r.stdout)
			}
			if left := tagged(tag); len(left) > 0 {
				t.Errorf("%s\nleft: %v", script, left)
			}
		}
		if children := testenv.Descendants(c.cmd.Process.Pid); len(children) > 0 {
			t.Errorf("the helper keeps %+v", children)
		}
		c.down()
		if alive, zombies := orphans(); len(alive)+len(zombies) > 0 {
			t.Errorf("left: %+v %+v", alive, zombies)
		}
	})
}

// A degraded report claims no jail and says what is missing; SIGKILL to the helper
// still takes the command itself.
func TestDegradedReport(t *testing.T) {
	testenv.EachUser(t, func(t *testing.T, u testenv.User) {
		m := mode{"degraded", t, u, testenv.TempDir(t, u)}
		c := m.connect(m.policy())
		x := c.sh(2, m.dir, "true").exit
		if !x.Degraded || has(x.Enforcement, "bwrap") || has(x.Enforcement, "mounts") {
			t.Errorf("claims %q", x.Enforcement)
		}
		if !has(x.Enforcement, "skip:bwrap") || !has(x.Enforcement, "skip:mounts") || !has(x.Enforcement, "no-new-privs") || !has(x.Enforcement, "seccomp-hardening") {
			t.Errorf("says %q", x.Enforcement)
		}
		said := strings.Join(x.Enforcement, "\n")
		r := c.sh(4, m.dir, "chmod 755 "+testenv.TempDir(t, u)+" && echo chmod")
		if r.stdout != "chmod\n" || !strings.Contains(said, "modes, owners, times and attributes") {
			t.Errorf("got %q, said %q", r.stdout, said)
		}
		if strings.Contains(said, "keeps its capabilities") != (u.UID == 0) {
			t.Errorf("uid %d: %q", u.UID, said)
		}
		tag := uniqueSleep()
		c.until(3, m.dir, "sh", "-c", "echo ready; exec sleep "+tag)
		testenv.Eventually(t, "sleep", func() bool { return len(tagged("sleep\x00"+tag)) > 0 })
		_ = unix.Kill(c.cmd.Process.Pid, unix.SIGKILL)
		_ = c.cmd.Wait()
		testenv.Eventually(t, "the command's end", func() bool { return len(tagged(tag)) == 0 })
	})
}
