//go:build linux

package e2e

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandboxd/internal/testenv"
)

// The kernel tells nobody of these changes of the mount table (no POLLPRI): a directory
// above a mount is renamed, by the host or by a command of another helper, and a file
// system becomes read-only. A helper that ran commands before treats the next one as a
// helper does that has just begun.
func TestMountChangeWithoutAnEvent(t *testing.T) {
	u := testenv.Me()
	if u.UID != 0 {
		testenv.Skip(t, "root", "mounts are made")
	}
	for name, change := range map[string]func(t *testing.T, s *site){
		"renamed": func(_ *testing.T, s *site) { s.onHost("mv a c") },
		"swapped": func(_ *testing.T, s *site) { s.onHost("mv a t; mv b a; mv t b") },
		"swapped by a command": func(_ *testing.T, s *site) {
			s.expect(s.jail(s.policy(), "mv a t && mv b a && mv t b && echo done", "--standby=off"), "done\n")
		},
		"read-only": func(t *testing.T, s *site) {
			if out, err := exec.Command(testenv.Tool(t, "unshare"), "-m", "--propagation", "private", "mount", "-o", "remount,ro", s.path("fs")).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
		},
	} {
		for _, mode := range []string{"--standby=on", "--standby=off"} {
			t.Run(name+mode, func(t *testing.T) {
				s := newSite(t, u)
				s.write("one/secret", "secret\n")
				s.write("two/secret", "harmless\n")
				s.mkdir("ws/a/m")
				s.mkdir("ws/b/m")
				s.bind("one", "ws/a/m")
				s.bind("two", "ws/b/m")
				if err := unix.Mount("none", s.mkdir("fs"), "tmpfs", 0, "size=1m"); err != nil {
					testenv.Skip(t, "mount", err.Error())
				}
				t.Cleanup(func() {
					for _, at := range []string{"fs", "ws/a/m", "ws/b/m", "ws/c/m"} {
						_ = unix.Unmount(s.path(at), unix.MNT_DETACH)
					}
				})
				s.mkdir("fs/root")
				p := s.policy(s.protect("one/secret"))
				p.WritableRoots = append(p.WritableRoots, s.path("fs/root"))
				const show = "cat a/m/secret b/m/secret c/m/secret 2>/dev/null; touch ../fs/root/x 2>/dev/null && echo made; true"
				old := connect(t, s.u, p, mode)
				time.Sleep(30 * time.Millisecond)
				for id := range uint64(3) {
					s.expect(old.sh(2+id, s.ws, show), "harmless\nmade\n")
				}
				change(t, s)
				for id := range uint64(20) {
					old.start(10+id, s.ws, "/bin/cat", "b/m/secret", "c/m/secret") // it is quicker than a watch
					if r := old.collect(10 + id); r.exit == nil || strings.Contains(r.stdout, "secret\n") {
						t.Errorf("%q, %+v, %+v", r.stdout, r.exit, r.fail)
					}
				}
				got := old.sh(50, s.ws, show)
				s.end(old)
				fresh := connect(t, s.u, p, "--standby=off")
				want := fresh.sh(50, s.ws, show)
				s.end(fresh)
				if got.stdout != want.stdout || got.exit == nil || want.exit == nil || !slices.Equal(got.exit.Enforcement, want.exit.Enforcement) {
					t.Errorf("got  %q %+v\nwant %q %+v", got.stdout, got.exit, want.stdout, want.exit)
				}
			})
		}
	}
}
