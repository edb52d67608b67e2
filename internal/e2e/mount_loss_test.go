//go:build linux

package e2e

import (
	"os"
	"strings"
	"testing"
	"time"

	"sandboxd/protocol"
)

// lossBound is how soon an execution ends after its mask is lost. Nothing but a
// whole series of runs that all miss it is a failure, since the machine may be busy.
const (
	lossBound = 100 * time.Millisecond
	lossTries = 20
)

// The host saves a masked file as editors do, by rename: the kernel takes the mask away.
func TestMountMaskLostToTheHost(t *testing.T) {
	const reader = `trap '' TERM; echo ready; i=0; while [ $((i+=1)) -lt 1000000 ]; do cat .env 2>/dev/null; done`
	eachSite(t, func(t *testing.T, s *site) {
		s.write("ws/.env", "secret one\n")
		c := connect(t, s.u, s.policy(s.protect("ws/.env")))
		best := time.Hour
		for n := range lossTries {
			id := uint64(n + 2)
			c.start(id, s.ws, "sh", "-c", strings.Replace(reader, "trap '' TERM; ", "", 1))
			c.waitOut(id, "ready")
			s.write("ws/.env.new", "secret two\n")
			from := time.Now()
			if err := os.Rename(s.path("ws/.env.new"), s.path("ws/.env")); err != nil {
				t.Fatal(err)
			}
			r := c.collect(id)
			best = min(best, time.Since(from))
			// What it read meanwhile says nothing: rename(2) takes the mount away before it
			// moves the name, so even the old file shows for a moment.
			if r.exit == nil || !r.exit.Cancelled || r.exit.TimedOut {
				t.Fatalf("got %+v, %+v, %q", r.exit, r.fail, r.stdout)
			}
			if got := mountSkips(r); !strings.Contains(got, s.path("ws/.env")) || !strings.HasSuffix(got, "was replaced on the host during the run; stopped") {
				t.Fatalf("report: %q", got)
			}
			if best <= lossBound {
				break
			}
		}
		t.Logf("stopped and reported after %v", best)
		if best > lossBound {
			t.Errorf("stopped and reported after %v at best, expected %v", best, lossBound)
		}
		// The ladder ends what ignores TERM.
		c.start(100, s.ws, "sh", "-c", reader)
		c.waitOut(100, "ready")
		s.onHost("echo three >.env.new; mv .env.new .env")
		if r := c.collect(100); r.exit == nil || r.exit.Signal != 9 || !r.exit.Cancelled {
			t.Errorf("got %+v, %+v", r.exit, r.fail)
		}
		// The control: undisturbed, nothing is stopped or reported.
		if r := c.try(101, s.ws, "echo ran"); r.exit.Cancelled || mountSkips(r) != "" || r.stdout != "ran\n" {
			t.Errorf("got %+v, %q", r.exit, r.stdout)
		}
		s.end(c)
	})
}

// A loss happened to one that only reports: the command goes on.
func TestMountMaskLossOnlyReported(t *testing.T) {
	eachSite(t, func(t *testing.T, s *site) {
		s.write("ws/.env", "secret one\n")
		c := connect(t, s.u, s.policy(s.protect("ws/.env")), "--on-mask-loss", "report")
		c.start(2, s.ws, "sh", "-c", "echo ready; cat; cat .env")
		c.waitOut(2, "ready")
		s.onHost("echo two >.env.new; mv .env.new .env")
		c.send(2, protocol.ExecStdin{EOF: true})
		r := c.collect(2)
		s.end(c)
		if r.exit == nil || r.exit.Code != 0 || r.exit.Cancelled || r.stdout != "two\n" {
			t.Errorf("got %+v, %+v, %q", r.exit, r.fail, r.stdout)
		}
		if got := mountSkips(r); !strings.HasSuffix(got, "was replaced on the host during the run") {
			t.Errorf("report: %q", got)
		}
	})
}

// git itself replaces its configuration on the host. The mount that kept it read-only is
// gone, so what the command then writes, the user's next git would run: it is stopped,
// unless it is only to be reported.
func TestMountReadOnlyConfigReplacedByTheHost(t *testing.T) {
	const writer = `echo ready; trap 'exit 3' TERM; while sleep 0.05; do { echo >>.git/config; } 2>/dev/null && echo "# written" >>.git/config; done`
	eachSite(t, func(t *testing.T, s *site) {
		s.repository()
		readOnly := s.policy(func(p *protocol.Policy) {
			p.Mounts = []protocol.Mount{{Path: s.path("ws/.git/config"), Access: protocol.ReadOnly, Required: true}}
		})
		c := connect(t, s.u, readOnly)
		c.start(2, s.ws, "sh", "-c", writer)
		c.waitOut(2, "ready")
		s.onHost("git config a.b c")
		r := c.collect(2)
		if r.exit == nil || !r.exit.Cancelled || r.exit.TimedOut {
			t.Fatalf("got %+v, %+v, %q", r.exit, r.fail, r.stdout)
		}
		if got := mountSkips(r); !strings.Contains(got, s.path("ws/.git/config")) || !strings.HasSuffix(got, "was replaced on the host during the run, and what came there could be written; stopped") {
			t.Errorf("report: %q", got)
		}
		// The next execution mounts the new file.
		r = c.try(3, s.ws, "git config a.b; git config a.b d 2>/dev/null || echo refused")
		s.end(c)
		if r.stdout != "c\nrefused\n" || mountSkips(r) != "" {
			t.Errorf("got %q, %q", r.stdout, r.exit.Enforcement)
		}

		c = connect(t, s.u, readOnly, "--on-mask-loss", "report")
		c.start(2, s.ws, "sh", "-c", "echo ready; cat; git config a.b e && echo went on")
		c.waitOut(2, "ready")
		s.onHost("git config a.b d")
		c.send(2, protocol.ExecStdin{EOF: true})
		r = c.collect(2)
		s.end(c)
		if r.exit == nil || r.exit.Code != 0 || r.exit.Cancelled || r.stdout != "went on\n" {
			t.Fatalf("got %+v, %+v, %q", r.exit, r.fail, r.stdout)
		}
		if got := mountSkips(r); !strings.HasSuffix(got, "was replaced on the host during the run, and what came there could be written") {
			t.Errorf("report: %q", got)
		}
	})
}

// What is read-only in a read-only place is nothing that a command could write without
// its mount.
func TestMountReadableReplacedByTheHost(t *testing.T) {
	eachSite(t, func(t *testing.T, s *site) {
		s.write("data/in/f", "one\n")
		r, c := result{}, connect(t, s.u, s.policy(func(p *protocol.Policy) {
			p.ReadableRoots = []string{s.path("data")}
			p.Mounts = []protocol.Mount{{Path: s.path("data/in/f"), Access: protocol.ReadOnly, Required: true}}
		}))
		c.start(2, s.ws, "sh", "-c", "echo ready; cat; echo x 2>/dev/null >>../data/in/f || cat ../data/in/f")
		c.waitOut(2, "ready")
		s.onHost("echo two >../data/in/g; mv ../data/in/g ../data/in/f")
		c.send(2, protocol.ExecStdin{EOF: true})
		r = c.collect(2)
		s.end(c)
		if r.exit == nil || r.exit.Cancelled || r.stdout != "two\n" || !strings.HasSuffix(mountSkips(r), "was replaced on the host during the run") {
			t.Errorf("got %+v, %+v, %q", r.exit, r.fail, r.stdout)
		}
	})
}

// What is protected, and is made by the host only while the command runs, has no mask
// where the command could have made nothing.
func TestMountProtectedThatComes(t *testing.T) {
	eachSite(t, func(t *testing.T, s *site) {
		s.mkdir("data")
		p := s.policy(s.protect("data/later"), func(p *protocol.Policy) { p.ReadableRoots = []string{s.path("data")} })
		c := connect(t, s.u, p)
		c.start(2, s.ws, "sh", "-c", "echo ready; for i in $(seq 200); do [ -e ../data/other ] && : >seen; sleep 0.05; done")
		c.waitOut(2, "ready")
		s.onHost("echo x >../data/other; while ! [ -e seen ]; do sleep 0.05; done; echo secret >../data/later")
		r := c.collect(2)
		if r.exit == nil || !r.exit.Cancelled || !strings.HasSuffix(mountSkips(r), `data/later" came during the run, and no mask lies on it; stopped`) {
			t.Errorf("got %+v, %+v, %q", r.exit, r.fail, r.stdout)
		}
		// From then on it is masked.
		if r := c.try(3, s.ws, "cat ../data/other ../data/later 2>/dev/null; true"); r.stdout != "x\n" || mountSkips(r) != "" {
			t.Errorf("got %+v, %q", r.exit, r.stdout)
		}
		s.end(c)
	})
}

// A service that is started again has another socket, on which no mask lies. One that
// only ends, as an agent does when its user logs out, leaves nothing to be reached, until
// something is there again.
func TestMountServiceStartedAgain(t *testing.T) {
	needPerl(t)
	eachSite(t, func(t *testing.T, s *site) {
		agent, path := s.mkdir("agent"), s.mkdir("run")+"/s"
		greeter(t, s.u, agent+"/s")
		greeter(t, s.u, path)
		t.Setenv("SSH_AUTH_SOCK", agent+"/s")
		t.Setenv("DOCKER_HOST", "unix://"+path)
		c := connect(t, s.u, s.policy(func(p *protocol.Policy) { p.ReadableRoots, p.Scratch = []string{"/"}, "/tmp" }))
		if r := c.try(2, s.ws, dial(agent+"/s")+dial(path)); r.stdout != "refused\nrefused\n" {
			t.Fatalf("got %q", r.stdout)
		}
		c.start(3, s.ws, "sh", "-c", "echo ready; cat; echo went on; exec sleep 600")
		c.waitOut(3, "ready")
		s.onHost("rm -r ../agent ../run/s")
		time.Sleep(300 * time.Millisecond) // some looks of the watch
		c.send(3, protocol.ExecStdin{EOF: true})
		c.waitOut(3, "went on")
		greeter(t, s.u, path)
		r := c.collect(3)
		if r.exit == nil || !r.exit.Cancelled {
			t.Errorf("started again: got %+v, %+v, %q", r.exit, r.fail, r.stdout)
		}
		if got := mountSkips(r); !strings.Contains(got, path) || strings.Contains(got, agent) || !strings.HasSuffix(got, "was replaced on the host during the run; stopped") {
			t.Errorf("report: %q", got)
		}
		s.end(c)
	})
}

// A rename of a directory above carries the mounts away, without a word of the
// kernel's: found at the next look, or at the end of a command that is quicker.
func TestMountPinCarriedAwayByTheHost(t *testing.T) {
	eachSite(t, func(t *testing.T, s *site) {
		s.repository()
		c := connect(t, s.u, s.policy(s.protect("ws/.git/hooks")))
		c.start(2, s.ws, "sh", "-c", "echo ready; exec sleep 600")
		c.waitOut(2, "ready")
		s.onHost("mv .git g")
		r := c.collect(2)
		if r.exit == nil || !r.exit.Cancelled || !strings.Contains(mountSkips(r), s.path("ws/.git")) {
			t.Errorf("got %+v, %+v", r.exit, r.fail)
		}
		s.onHost("mv g .git")
		if got := mountSkips(c.try(3, s.ws, "true")); got != "" {
			t.Errorf("undisturbed: %q", got)
		}
		s.end(c)
	})
}
