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

// forge makes a placeholder's marks on something of the workspace, as a command can:
// both the attribute and the time.
func (s *site) forge(rel string) {
	s.t.Helper()
	_ = unix.Setxattr(s.path(rel), "user.sandboxd.placeholder", []byte("1"), 0)
	at := time.Unix(1234567890, 271828000)
	if err := os.Chtimes(s.path(rel), at, at); err != nil {
		s.t.Fatal(err)
	}
}

// A command that marks its own files as placeholders makes nothing vanish from the
// policies that come after it.
func TestMountForgedMark(t *testing.T) {
	eachSite(t, func(t *testing.T, s *site) {
		for _, rel := range []string{"ws/out", "ws/narrow", "ws/required", "ws/scratch", "ws/cwd"} {
			s.mkdir(rel)
			s.forge(rel)
		}
		s.write("ws/.env", "short")
		s.forge("ws/.env")
		s.write("ws/commondir/f", "x")
		p := s.policy(s.protect("ws/.env"), func(p *protocol.Policy) {
			p.WritableRoots = append(p.WritableRoots, s.path("ws/out"))
			p.ReadableRoots = append(p.ReadableRoots, s.path("ws/narrow"))
			p.Mounts = []protocol.Mount{{Path: s.path("ws/required"), Access: protocol.ReadOnly, Required: true}}
			p.Scratch = s.path("ws/scratch")
		})
		c := connect(t, s.u, p)
		r := c.try(2, s.path("ws/cwd"), try+`cd ..
try out ': >out/x; rm out/x'
try narrow ': >narrow/x'
try required ': >required/x'
try secret cat .env
try "over it" 'mv narrow n'`)
		s.end(c)
		s.expect(r, "out yes\nnarrow no\nrequired no\nsecret no\nover it no\n")
		if got := entry(t, r, "mounts"); !strings.Contains(got, "ro=1,rw=2,mask=1,absent=0") || mountSkips(r) != "" {
			t.Errorf("report: %q", r.exit.Enforcement)
		}
		if got := s.read("ws/.env"); got != "short" {
			t.Errorf("the host's file: %q", got)
		}
		s.expect(s.jail(s.policy(), "cat .env; : >narrow/x && echo made"), "shortmade\n")
	})
}

// A umask that shuts out the owner itself still gives placeholders, which go again.
func TestMountPlaceholderUnderAnyUmask(t *testing.T) {
	eachSite(t, func(t *testing.T, s *site) {
		s.mkdir("ws/.git")
		before := s.tree()
		old := unix.Umask(0o777)
		c := connect(t, s.u, s.policy(s.protect("ws/.netrc", "ws/.git/commondir")))
		unix.Umask(old)
		s.expect(c.try(2, s.ws, try+"try make ': >.netrc'; try file ': >.git/commondir'; cat .git/commondir; umask"), "make no\nfile no\n./0777\n")
		s.end(c)
		s.unchanged(before)
	})
}
