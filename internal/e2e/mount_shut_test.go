//go:build linux

package e2e

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"sandboxd/protocol"
)

// A command closes directories of its user's, and the next one opens them again: what the
// helper could not see behind them meanwhile is kept all the same.
func TestMountBehindAClosedDirectory(t *testing.T) {
	needPerl(t)
	eachSite(t, func(t *testing.T, s *site) {
		s.write("keys/key", "secret\n")
		s.write("ws/box/ro/f", "old\n")
		s.mkdir("ws/name/keys")
		s.bind("keys", "ws/name/keys")
		sock := s.mkdir("ws/run") + "/s"
		greeter(t, s.u, sock)
		t.Setenv("EDITOR_IPC", sock)
		s.mkdir("ws/chroot/sys")
		kernel := unix.Mount("sysfs", s.path("ws/chroot/sys"), "sysfs", 0, "") == nil
		defer unix.Unmount(s.path("ws/chroot/sys"), unix.MNT_DETACH)
		const look = "chmod 700 name box run chroot 2>/dev/null\ncat name/keys/key 2>/dev/null\n(: >>box/ro/f) 2>/dev/null && echo written\n"
		all := look + dial(sock)
		if kernel && s.u.UID == 0 {
			// Its own mode again: no other file of sysfs is safe to write.
			all += "chmod 644 chroot/sys/kernel/profiling 2>/dev/null && echo changed\n"
		}
		open := s.policy(func(p *protocol.Policy) { p.WritableRoots = append(p.WritableRoots, s.path("ws/run")) })
		if kernel {
			open.WritableRoots = append(open.WritableRoots, s.path("ws/chroot/sys"))
		}
		want := "secret\nwritten\nhello\n"
		if kernel && s.u.UID == 0 {
			want += "changed\n"
		}
		s.expect(s.jail(open, all+"true"), want) // the control
		for _, required := range []bool{false, true} {
			p := s.policy(s.protect("keys/key"), func(p *protocol.Policy) {
				p.ReadableRoots = append(p.ReadableRoots, s.path("ws/box/ro"))
				if required {
					p.ReadableRoots = nil
					p.Mounts = append(p.Mounts, protocol.Mount{Path: s.path("ws/box/ro"), Access: protocol.ReadOnly})
				}
			})
			s.expect(s.jail(p, all+"chmod 0 name box run chroot && echo closed"), "refused\nclosed\n")
			for _, dir := range []string{"name", "box", "run", "chroot"} {
				if info, err := os.Stat(s.path("ws/" + dir)); err != nil || info.Mode().Perm() != 0 {
					t.Fatalf("%s: %v, %v", dir, info, err)
				}
			}
			s.expect(s.jail(p, all+"true"), "refused\n")
			for _, dir := range []string{"name", "box", "run", "chroot"} {
				if err := os.Chmod(s.path("ws/"+dir), 0o755); err != nil {
					t.Error(err)
				}
			}
		}
	})
}
