//go:build linux

package e2e

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"sandboxd/internal/testenv"
	"sandboxd/protocol"
)

// greeter listens at a path and says hello to everyone.
func greeter(t *testing.T, u testenv.User, path string) {
	t.Helper()
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	if err := os.Chown(path, u.UID, u.GID); err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte("hello\n"))
			c.Close()
		}
	}()
}

// dial is a command that connects to a socket and prints what it says.
func dial(path string) string {
	return fmt.Sprintf(`/usr/bin/perl -MIO::Socket::UNIX -e '$s = IO::Socket::UNIX->new(Peer => "%s") or exit print "refused\n"; print <$s>'`+"\n", path)
}

func TestMountSocketUnderTmp(t *testing.T) {
	needPerl(t)
	eachSite(t, func(t *testing.T, s *site) {
		path := filepath.Join(testenv.TempDir(t, s.u), "s")
		greeter(t, s.u, path)
		for _, access := range []protocol.Access{protocol.ReadOnly, protocol.ReadWrite} {
			p := s.policy(func(p *protocol.Policy) {
				p.Mounts = []protocol.Mount{{Path: path, Access: access, Required: true}}
			})
			s.expect(s.jail(p, dial(path)+"ls "+filepath.Dir(path)), "hello\ns\n")
		}
		s.expect(s.jail(s.policy(), dial(path)), "refused\n")
	})
}

// serviceDir makes a directory of the service table, or gives up the case where
// the host uses it already.
func serviceDir(t *testing.T, u testenv.User, dir string) (path string, ok bool) {
	t.Helper()
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Logf("%s is not tried: %v", dir, err)
		return "", false
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chown(dir, u.UID, u.GID); err != nil {
		t.Fatal(err)
	}
	path = dir + "/sandboxd-test"
	greeter(t, u, path)
	return path, true
}

// A view of the whole host hides the sockets of the user's own services, unless
// the policy names them.
func TestMountServiceSocketsOfAHostView(t *testing.T) {
	needPerl(t)
	eachSite(t, func(t *testing.T, s *site) {
		agent := s.mkdir("agent")
		greeter(t, s.u, agent+"/s")
		t.Setenv("SSH_AUTH_SOCK", agent+"/s")
		other := s.mkdir("other")
		greeter(t, s.u, other+"/s")
		places := []string{agent + "/s"}
		for _, dir := range []string{fmt.Sprintf("/run/user/%d", s.u.UID), fmt.Sprintf("/tmp/tmux-%d", s.u.UID)} {
			if path, ok := serviceDir(t, s.u, dir); ok {
				places = append(places, path)
			}
		}
		view := func(p *protocol.Policy) { p.ReadableRoots, p.Scratch = []string{"/"}, "/tmp" }
		var all string
		for _, path := range places {
			all += dial(path)
		}
		refused, hello := "", ""
		for range places {
			refused += "refused\n"
			hello += "hello\n"
		}
		r := s.jail(s.policy(view), all)
		s.expect(r, refused)
		// A socket that no table knows stays reachable, and the report says so.
		r = s.jail(s.policy(view), dial(other+"/s"))
		if r.stdout == "hello\n" {
			entry(t, r, "skip:sockets")
		}
		s.expect(s.jail(s.policy(view, func(p *protocol.Policy) {
			for _, path := range places {
				p.ReadableRoots = append(p.ReadableRoots, filepath.Dir(path))
			}
		}), all), hello)
		s.expect(s.jail(s.policy(view, func(p *protocol.Policy) {
			for _, path := range places {
				p.Mounts = append(p.Mounts, protocol.Mount{Path: path, Access: protocol.ReadOnly, Required: true})
			}
		}), all), hello)
	})
}

// A device works only through an explicit mount: any other bind is nodev.
func TestMountDevice(t *testing.T) {
	if os.Getuid() != 0 {
		testenv.Skip(t, "root", "only root can make a device node")
	}
	eachSite(t, func(t *testing.T, s *site) {
		null := s.path("ws/null")
		if err := unix.Mknod(null, unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(null, 0o666); err != nil {
			t.Fatal(err)
		}
		s.own(null)
		mounts := []protocol.Mount{{Path: null, Access: protocol.ReadWrite, Required: true}}
		script := try + "try null 'echo x >null && ! read x <null'\n"
		if _, err := os.Stat("/dev/fuse"); err == nil && s.u.UID == 0 {
			mounts = append(mounts, protocol.Mount{Path: "/dev/fuse", Access: protocol.ReadWrite, Required: true})
			script += "try fuse 'exec 9<>/dev/fuse'\n"
		}
		device := func(p *protocol.Policy) { p.Mounts = mounts }
		want, none := "null yes\n", "null no\n"
		if len(mounts) > 1 {
			want, none = want+"fuse yes\n", none+"fuse no\n"
		}
		r := s.jail(s.policy(device), script)
		s.expect(r, want)
		s.expect(s.jail(s.policy(), script), none)
	})
}
