//go:build linux

package e2e

import (
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandboxd/protocol"
)

// A mount that the host makes often has the number of one that it has just taken away:
// what stood when the command started is no reason to trust it.
func TestMountWithTheNumberOfAnother(t *testing.T) {
	eachSite(t, func(t *testing.T, s *site) {
		for _, dir := range []string{"old", "ws/old", "ws/place", "fill"} {
			s.mkdir(dir)
		}
		s.write("keys/k", "secret\n")
		s.share("ws")
		p := s.policy(s.protect("keys"))
		h := connect(t, s.u, p)
		for n := range uint64(4) {
			s.bind("old", "ws/old")
			h.start(2+2*n, s.ws, "sh", "-c", "echo ready; exec sleep 8")
			h.waitOut(2+2*n, "ready")
			for range 60 { // they take what is free below
				if err := unix.Mount("fill", s.path("fill"), "tmpfs", 0, ""); err != nil {
					t.Fatal(err)
				}
			}
			if err := unix.Unmount(s.path("ws/old"), 0); err != nil {
				t.Fatal(err)
			}
			s.bind("keys", "ws/place")
			r := h.collect(2 + 2*n)
			if r.exit == nil || !r.exit.Cancelled || !strings.Contains(mountSkips(r), s.path("keys")+`" was mounted by the host at`) {
				t.Errorf("%d: got %+v, %q", n, r.exit, mountSkips(r))
			}
			for range 60 {
				if err := unix.Unmount(s.path("fill"), unix.MNT_DETACH); err != nil {
					t.Fatal(err)
				}
			}
			if err := unix.Unmount(s.path("ws/place"), unix.MNT_DETACH); err != nil {
				t.Fatal(err)
			}
			// The control: what stood there goes and comes, and stops nothing.
			s.bind("old", "ws/old")
			h.start(3+2*n, s.ws, "sh", "-c", "echo ready; read x; echo went on")
			h.waitOut(3+2*n, "ready")
			for range 2 {
				if err := unix.Unmount(s.path("ws/old"), 0); err != nil {
					t.Fatal(err)
				}
				s.bind("old", "ws/old")
			}
			time.Sleep(100 * time.Millisecond) // some looks
			h.send(3+2*n, protocol.ExecStdin{Data: []byte("\n"), EOF: true})
			if r := h.collect(3 + 2*n); r.exit == nil || r.exit.Cancelled || mountSkips(r) != "" || !strings.HasSuffix(r.stdout, "went on\n") {
				t.Errorf("%d, control: got %+v, %+v, %q", n, r.exit, r.fail, r.stdout)
			}
			if err := unix.Unmount(s.path("ws/old"), 0); err != nil {
				t.Fatal(err)
			}
		}
		s.end(h)
	})
}

// A mount that the host makes at the name of a mask that it has just taken away is not
// that mask, though it is again one mount.
func TestMountInPlaceOfAMask(t *testing.T) {
	eachSite(t, func(t *testing.T, s *site) {
		s.write("secret", "of the host\n")
		s.share("ws")
		s.write("ws/.env", "secret one\n")
		h := connect(t, s.u, s.policy(s.protect("ws/.env")))
		for n := range uint64(10) {
			h.start(2+n, s.ws, "sh", "-c", "echo ready; exec sleep 8")
			h.waitOut(2+n, "ready")
			s.write("ws/.env.new", "secret two\n")
			if err := os.Rename(s.path("ws/.env.new"), s.path("ws/.env")); err != nil {
				t.Fatal(err)
			}
			s.bind("secret", "ws/.env")
			r := h.collect(2 + n)
			if r.exit == nil || !r.exit.Cancelled || !strings.HasSuffix(mountSkips(r), `ws/.env" was replaced on the host during the run; stopped`) {
				t.Errorf("%d: got %+v, %q", n, r.exit, mountSkips(r))
			}
			if err := unix.Unmount(s.path("ws/.env"), unix.MNT_DETACH); err != nil {
				t.Fatal(err)
			}
		}
		// The control: what the host mounts on a masked file goes beneath the mask.
		h.start(20, s.ws, "sh", "-c", "echo ready; read x; cat .env; echo went on")
		h.waitOut(20, "ready")
		s.bind("secret", "ws/.env")
		time.Sleep(100 * time.Millisecond) // some looks
		h.send(20, protocol.ExecStdin{Data: []byte("\n"), EOF: true})
		if r := h.collect(20); r.exit == nil || r.exit.Cancelled || mountSkips(r) != "" || !strings.HasSuffix(r.stdout, "went on\n") || strings.Contains(r.stdout, "host") {
			t.Errorf("control: got %+v, %+v, %q", r.exit, r.fail, r.stdout)
		}
		s.end(h)
	})
}

// When the host unmounts what a mask lies on, the kernel lets the mask down onto what is
// beneath: it hides that, and nothing is lost.
func TestMountBeneathAMaskGoes(t *testing.T) {
	eachSite(t, func(t *testing.T, s *site) {
		s.write("ws/vault/f", "beneath\n")
		s.write("other/f", "of the other\n")
		s.write("ws/conf", "beneath\n")
		s.write("another/conf", "of the other\n")
		s.share("ws")
		h := connect(t, s.u, s.policy(s.protect("ws/vault"), func(p *protocol.Policy) {
			p.Mounts = []protocol.Mount{{Path: s.path("ws/conf"), Access: protocol.ReadOnly, Required: true}}
		}))
		s.bind("other", "ws/vault")
		s.bind("another/conf", "ws/conf")
		h.start(2, s.ws, "sh", "-c", "echo ready; read x; cat vault/f conf; echo x >>conf; echo went on")
		h.waitOut(2, "ready")
		for _, rel := range []string{"ws/vault", "ws/conf"} {
			if err := unix.Unmount(s.path(rel), unix.MNT_DETACH); err != nil {
				t.Fatal(err)
			}
		}
		if got := s.read("ws/vault/f"); got != "beneath\n" {
			t.Fatalf("on the host: %q", got)
		}
		time.Sleep(200 * time.Millisecond) // some looks
		h.send(2, protocol.ExecStdin{Data: []byte("\n"), EOF: true})
		r := h.collect(2)
		if r.exit == nil || r.exit.Cancelled || mountSkips(r) != "" || !strings.HasSuffix(r.stdout, "of the other\nwent on\n") || strings.Contains(r.stdout, "beneath") {
			t.Errorf("got %+v, %+v, %q, %q", r.exit, r.fail, r.stdout, r.stderr)
		}
		// The control: the mask that was let down can be lost like any other.
		s.bind("other", "ws/vault")
		h.start(3, s.ws, "sh", "-c", "echo ready; exec sleep 8")
		h.waitOut(3, "ready")
		if err := unix.Unmount(s.path("ws/vault"), unix.MNT_DETACH); err != nil {
			t.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond)
		s.onHost("mv vault gone; mkdir vault; echo new >vault/f")
		r = h.collect(3)
		if r.exit == nil || !r.exit.Cancelled || !strings.HasSuffix(mountSkips(r), `ws/vault" was replaced on the host during the run; stopped`) {
			t.Errorf("control: got %+v, %q", r.exit, mountSkips(r))
		}
		s.end(h)
	})
}
