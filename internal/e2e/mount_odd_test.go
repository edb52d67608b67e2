//go:build linux

package e2e

import (
	"math/rand"
	"strings"
	"testing"
	"time"

	"sandboxd/internal/testenv"
	"sandboxd/protocol"
)

// A directory that even its owner may not search hides what lies below: as a whole
// where the command could chmod it, and not at all where it is the root itself.
func TestMountProtectedBelowAClosedDirectory(t *testing.T) {
	eachSite(t, func(t *testing.T, s *site) {
		s.write("ws/d/s", "secret\n")
		const look = "chmod 700 d 2>/dev/null; cat d/s 2>/dev/null; echo done"
		s.onHost("chmod 600 d")
		s.expect(s.jail(s.policy(s.protect("ws/d/s")), look), "done\n")
		s.expect(s.jail(s.policy(s.protect("ws/d/s"), func(p *protocol.Policy) {
			p.WritableRoots, p.ReadableRoots = nil, []string{s.ws}
		}), look), "done\n")
		if got := s.refused(s.policy(s.protect("ws/d/s"), func(p *protocol.Policy) { p.WritableRoots = []string{s.path("ws/d")} })); !strings.Contains(got, "closed to its own owner") {
			t.Errorf("refused: %s", got)
		}
		s.expect(s.jail(s.policy(), look), "secret\ndone\n") // the control
	})
}

// A protected entry above a root hides the root: protected is subtractive.
func TestMountProtectedAboveARoot(t *testing.T) {
	eachSite(t, func(t *testing.T, s *site) {
		s.write("top/job/f", "seen\n")
		p := s.policy(s.protect("top"), func(p *protocol.Policy) { p.WritableRoots = append(p.WritableRoots, s.path("top/job")) })
		r := s.jail(p, "cat "+s.path("top/job/f")+" 2>/dev/null || echo hidden")
		s.expect(r, "hidden\n")
		if got := entry(t, r, "mounts"); !strings.Contains(got, "rw=1,mask=1") {
			t.Errorf("report: %q", got)
		}
		p.Protected = nil
		s.expect(s.jail(p, "cat "+s.path("top/job/f")), "seen\n")
	})
}

// A single file that the host has bound over another one is protected as what it is.
func TestMountProtectedFileThatIsAMount(t *testing.T) {
	eachSite(t, func(t *testing.T, s *site) {
		s.write("ws/f", "below\n")
		s.write("x/f", "secret\n")
		s.bind("x/f", "ws/f")
		p := s.policy(s.protect("ws/f"), func(p *protocol.Policy) { p.WritableRoots = append(p.WritableRoots, s.path("x")) })
		const look = "cat f ../x/f 2>/dev/null; echo x >>../x/f && echo written"
		s.expect(s.jail(p, "{ "+look+"; } 2>/dev/null; true"), "")
		p.Protected = nil
		s.expect(s.jail(p, look), "secret\nsecret\nwritten\n")
	})
}

// The host moves a masked file away, as an editor that keeps a backup does: the mask
// goes with it, without a word of the kernel's.
func TestMountMaskCarriedAwayByTheHost(t *testing.T) {
	eachSite(t, func(t *testing.T, s *site) {
		for _, change := range []string{"mv .env .env~; echo new >.env", "mv .git g; mkdir -p .git/hooks"} {
			s := newSite(t, s.u)
			s.write("ws/.env", "secret\n")
			s.mkdir("ws/.git/hooks")
			c := connect(t, s.u, s.policy(s.protect("ws/.env", "ws/.git/hooks")))
			c.start(2, s.ws, "sh", "-c", "echo ready; exec sleep 600")
			c.waitOut(2, "ready")
			s.onHost(change)
			r := c.collect(2)
			if r.exit == nil || !r.exit.Cancelled || !strings.Contains(mountSkips(r), "was replaced on the host during the run; stopped") {
				t.Errorf("%s: got %+v, %+v", change, r.exit, r.fail)
			}
			s.end(c)
		}
	})
}

// A killed helper's bubblewrap goes on building for a moment: a placeholder that the
// next execution took away then would be made again, as nobody's.
func TestMountKilledHelperBesideAnother(t *testing.T) {
	eachSite(t, func(t *testing.T, s *site) {
		before := s.tree()
		p := s.policy(s.protect("ws/miss/x", "ws/.git/hooks"))
		c := connect(t, s.u, p)
		for n := range uint64(scaled(500, 25)) {
			k := connect(t, s.u, p)
			k.start(2, s.ws, "sleep", "600")
			time.Sleep(time.Duration(rand.Intn(20000)) * time.Microsecond)
			if err := k.cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			s.expect(c.try(2+n, s.ws, "echo ran"), "ran\n")
			k.wait()
		}
		id := uint64(1 << 20)
		testenv.Eventually(t, "the removal of what was left", func() bool {
			id++
			s.expect(c.try(id, s.ws, "echo ran"), "ran\n")
			// The answer comes before this execution's own are taken away.
			for end := time.Now().Add(time.Second); s.tree() != before; testenv.Pause() {
				if time.Now().After(end) {
					return false
				}
			}
			return true
		})
		s.end(c)
	})
}

// What the host mounts during the run may show what the view did not hold before.
func TestMountByTheHostOfWhatWasHidden(t *testing.T) {
	eachSite(t, func(t *testing.T, s *site) {
		s.write("x/secret", "secret\n")
		s.mkdir("ws/new")
		s.share("ws")
		c := connect(t, s.u, s.policy(s.protect("x/secret")))
		c.start(2, s.ws, "sh", "-c", "echo ready; exec sleep 600")
		c.waitOut(2, "ready")
		s.bind("x", "ws/new")
		r := c.collect(2)
		s.end(c)
		if r.exit == nil || !r.exit.Cancelled || !strings.Contains(mountSkips(r), s.path("x/secret")) {
			t.Errorf("got %+v, %+v", r.exit, r.fail)
		}
	})
}
