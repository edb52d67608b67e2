//go:build linux

package e2e

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandboxd/internal/testenv"
	"sandboxd/protocol"
)

// A jail that fails is built anew where the host took something away under it, also where
// nothing at its end shows that: what was missing and masked, a directory that came back.
// A jail that fails by itself is not.
func TestMountMovedWhileItIsBuilt(t *testing.T) {
	testenv.EachUser(t, func(t *testing.T, u testenv.User) {
		for _, tc := range []struct {
			name, change string
			jails        int
		}{
			{"what is missing is made", "rm -r DIR/new; mkdir DIR/new", 2},
			{"what is missing is made and removed", "rm -r DIR/new; mkdir DIR/new; rm -r DIR/new", 2},
			{"a file is removed", "rm DIR/a/.env", 2},
			{"a file comes back", "mv DIR/a/.env DIR/b; mv DIR/b DIR/a/.env", 2},
			{"a directory comes back", "mv DIR/a DIR/b; mkdir DIR/a; rm -r DIR/a; mv DIR/b DIR/a", 2},
			{"a file is written", "echo more >>DIR/a/.env; echo new >DIR/a/f", 1},
			{"nothing", ":", 1},
		} {
			t.Run(tc.name, func(t *testing.T) {
				m := jailed(t, u)
				dir, jails := filepath.Join(m.dir, "a"), filepath.Join(m.dir, "jails")
				env := filepath.Join(dir, ".env")
				if err := os.Mkdir(dir, 0o755); err != nil {
					t.Fatal(err)
				}
				write(t, env, "secret\n")
				for _, path := range []string{dir, env} {
					if err := os.Lchown(path, u.UID, u.GID); err != nil {
						t.Fatal(err)
					}
				}
				p := m.policy()
				p.Protected = []string{env, filepath.Join(m.dir, "new")}
				fake := m.fake("[ -e " + jails + ` ] && echo >>` + jails + ` && exec /usr/bin/bwrap "$@"
echo >>` + jails + "\n" + strings.ReplaceAll(tc.change, "DIR", m.dir) + "\necho no luck >&2; exit 1")
				c := m.connect(p, "--bwrap", fake, "--standby=off")
				var r result
				for id, quiet := uint64(2), false; !quiet && id < 12; id++ { // no other test mounts
					_ = os.Remove(jails)
					untouched := watchMounts(t)
					c.start(id, m.dir, "echo", "ran")
					r = c.collect(id)
					quiet = untouched() || tc.jails > 1
				}
				if tried, err := os.ReadFile(jails); err != nil || len(tried) != tc.jails {
					t.Errorf("%d jails were built, %v", len(tried), err)
				}
				if ran := r.stdout == "ran\n"; ran != (tc.jails > 1) || !ran && (r.fail == nil || !strings.Contains(r.fail.Msg, "no luck")) {
					t.Errorf("got %q, %+v, %+v", r.stdout, r.exit, r.fail)
				}
				c.down()
			})
		}
	})
}

// watchMounts gives a function that says, once, whether the mount table is the same as now,
// and was meanwhile: what is mounted and unmounted again shows in no reading.
func watchMounts(t *testing.T) func() bool {
	t.Helper()
	read := func(f *os.File) string {
		b, err := io.ReadAll(f)
		if err != nil || len(b) == 0 {
			t.Fatalf("%d bytes of the mount table, %v", len(b), err)
		}
		return string(b)
	}
	fd, err := unix.Open("/proc/self/mountinfo", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fd), "mountinfo") // Go's poller does not watch it
	before := read(f)
	return func() bool {
		defer f.Close()
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLPRI}}, 0)
		if _, at := f.Seek(0, io.SeekStart); err != nil || at != nil {
			t.Fatal(err, at)
		}
		return n == 0 && read(f) == before
	}
}

// What the host takes away a moment before it is mounted on, as git clean does with a
// placeholder, bubblewrap makes again; that does not stay either. What the host itself
// puts there does.
func TestMountPointMadeByBubblewrap(t *testing.T) {
	testenv.EachUser(t, func(t *testing.T, u testenv.User) {
		for _, tc := range []struct{ change, during, want string }{
			{"rm -r DIR/new", "", "a a/.env c"},
			{":", "rm -r new; mkdir new", "a a/.env c new"},
			{"rm DIR/a/.env", "", "a c"},
			{"rm -r DIR/new DIR/a/.env DIR/c/x", "", "a c"},
			{"rm -r DIR/a; mkdir DIR/a", "", "a c"},
			{"rm -r DIR/new; mkdir -m 700 DIR/new", "", "a a/.env c new"},
			{"rm -r DIR/new; mkdir -m 755 DIR/new; echo >DIR/new/f", "", "a a/.env c new new/f"},
			{"rm DIR/a/.env; umask 0; : >DIR/a/.env", "", "a a/.env c"},
			{"rm DIR/a/.env; echo >DIR/a/.env; chmod 444 DIR/a/.env", "", "a a/.env c"},
		} {
			m := jailed(t, u)
			env := filepath.Join(m.dir, "a/.env")
			for _, path := range []string{"a", "c", "a/.env"} {
				at := filepath.Join(m.dir, path)
				if at == env {
					write(t, at, "secret\n")
				} else if err := os.Mkdir(at, 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.Lchown(at, u.UID, u.GID); err != nil {
					t.Fatal(err)
				}
			}
			p := m.policy()
			p.Protected = []string{env, filepath.Join(m.dir, "new"), filepath.Join(m.dir, "c/x/y")}
			once := filepath.Join(m.u.Home, "once")
			_ = os.Remove(once)
			fake := m.fake("[ -e " + once + " ] || { : >" + once + "; " + strings.ReplaceAll(tc.change, "DIR", m.dir) + `; }; exec /usr/bin/bwrap "$@"`)
			c := m.connect(p, "--bwrap", fake, "--standby=off")
			c.start(2, m.dir, "sh", "-c", "echo ready; read x; cat a/.env; mkdir new/x c/x/y; echo ran")
			c.waitOut(2, "ready")
			if tc.during != "" { // the mask goes, and the command is stopped
				if out, err := testenv.As(t, exec.Command("sh", "-c", "umask 022; cd "+m.dir+" && "+tc.during), u).CombinedOutput(); err != nil {
					t.Fatalf("%v: %s", err, out)
				}
			}
			c.send(2, protocol.ExecStdin{Data: []byte("\n"), EOF: true})
			if r := c.collect(2); tc.during == "" && r.stdout != "ran\n" {
				t.Errorf("%s: %q, %q, %+v, %+v", tc.change, r.stdout, r.stderr, r.exit, r.fail)
			}
			c.down()
			out, err := exec.Command("sh", "-c", "cd "+m.dir+" && find . -mindepth 1 -printf '%P\n' | sort | xargs").Output()
			if got := strings.TrimSpace(string(out)); got != tc.want {
				t.Errorf("%s: there is %q, want %q, %v", tc.change, got, tc.want, err)
			}
		}
	})
}

// Nor does what it makes for a jail that waits, whether the jail is used or thrown away;
// what the host puts there meanwhile does.
func TestMountPointMadeForAStandby(t *testing.T) {
	testenv.EachUser(t, func(t *testing.T, u testenv.User) {
		for _, tc := range []struct{ during, run, want string }{
			{"", "", "a"},
			{"", "echo ran", "a"},
			{"rm -f a/.env; : >a/.env; chmod 444 a/.env", "", "a a/.env"},
		} {
			m := jailed(t, u)
			env, once := filepath.Join(m.dir, "a/.env"), filepath.Join(m.u.Home, "once")
			if err := os.Mkdir(filepath.Dir(env), 0o755); err != nil {
				t.Fatal(err)
			}
			write(t, env, "secret\n")
			for _, path := range []string{filepath.Dir(env), env} {
				if err := os.Lchown(path, u.UID, u.GID); err != nil {
					t.Fatal(err)
				}
			}
			_ = os.Remove(once)
			p := m.policy()
			p.Protected = []string{env}
			c := m.connect(p, "--standby=on", "--bwrap", m.fake("[ -e "+once+" ] || { : >"+once+"; rm "+env+"; }; exec /usr/bin/bwrap \"$@\""))
			testenv.Eventually(t, "what bubblewrap makes", func() bool {
				st, err := os.Stat(env)
				return err == nil && st.Size() == 0 && st.Mode() == 0o444
			})
			testenv.Eventually(t, "a jail that waits", func() bool {
				return slices.ContainsFunc(testenv.Descendants(c.cmd.Process.Pid), func(p testenv.Process) bool { return strings.HasPrefix(p.Comm, "8") })
			})
			time.Sleep(50 * time.Millisecond) // and long enough to be no more of its building
			if tc.during != "" {
				if out, err := testenv.As(t, exec.Command("sh", "-c", "cd "+m.dir+" && "+tc.during), u).CombinedOutput(); err != nil {
					t.Fatalf("%v: %s", err, out)
				}
			}
			if tc.run != "" {
				if r := c.sh(2, m.dir, tc.run); r.stdout != "ran\n" {
					t.Errorf("got %q, %+v, %+v", r.stdout, r.exit, r.fail)
				}
			}
			c.down()
			out, err := exec.Command("sh", "-c", "cd "+m.dir+" && find . -mindepth 1 -printf '%P\n' | sort | xargs").Output()
			if got := strings.TrimSpace(string(out)); got != tc.want {
				t.Errorf("%q, %q: there is %q, want %q, %v", tc.during, tc.run, got, tc.want, err)
			}
		}
	})
}
