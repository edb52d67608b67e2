//go:build linux

package e2e

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sandboxd/internal/testenv"
	"sandboxd/protocol"
)

// A mount does not keep a device or a named pipe from being written, read-only or not:
// only Landlock does. Without it the report counts neither as read-only, and names both.
func TestMountReadOnlyDevice(t *testing.T) {
	if os.Getuid() != 0 {
		testenv.Skip(t, "root", "only root can make a device node")
	}
	for _, landlock := range []bool{true, false} {
		t.Run(fmt.Sprintf("landlock=%v", landlock), func(t *testing.T) {
			eachSite(t, func(t *testing.T, s *site) { readOnlyDevices(t, s, landlock) })
		})
	}
}

func readOnlyDevices(t *testing.T, s *site, landlock bool) {
	s.mkdir("out")
	nodes := map[string]uint32{"mount": unix.S_IFCHR, "root": unix.S_IFCHR, "pipe": unix.S_IFIFO, "pipe-root": unix.S_IFIFO}
	for name, kind := range nodes {
		path := s.path("out/" + name)
		if err := unix.Mknod(path, kind|0o666, int(unix.Mkdev(1, 3))); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, 0o666); err != nil {
			t.Fatal(err)
		}
		s.own(path)
	}
	plain := s.write("out/plain", "text\n")
	ro := func(path string) protocol.Mount {
		return protocol.Mount{Path: path, Access: protocol.ReadOnly, Required: true}
	}
	p := s.policy(func(p *protocol.Policy) {
		p.Mounts = []protocol.Mount{ro(s.path("out/mount")), ro(s.path("out/pipe")), ro(plain)}
		p.ReadableRoots = append(p.ReadableRoots, s.path("out/root"), s.path("out/pipe-root"), "/usr/share")
	})
	m := mode{"bwrap", t, s.u, s.ws}
	helper := func(args ...string) *sup {
		cmd := m.command(args...)
		if !landlock {
			cmd = m.as("nolandlock", args...)
		}
		c := m.connectCmd(cmd, p)
		if has(c.hello.Features, "landlock") != landlock {
			testenv.Skip(t, "landlock", "this kernel has none")
		}
		return c
	}
	c := helper("--allow-unenforced")
	script := try
	for _, name := range []string{"mount", "root", "pipe", "pipe-root", "plain"} { // open(2) of a pipe: both ends, so nobody waits
		script += fmt.Sprintf("try %s 'exec 9<>%s'\n", name, s.path("out/"+name))
	}
	r := c.try(2, s.ws, script)
	s.end(c.conn)
	written, ro1, ro2 := "yes", "ro=1,", "bind_ro=1,"
	if landlock {
		written, ro1, ro2 = "no", "ro=3,", "bind_ro=3,"
	}
	s.expect(r, fmt.Sprintf("mount %[1]s\nroot %[1]s\npipe %[1]s\npipe-root %[1]s\nplain no\n", written))
	at := slices.IndexFunc(r.exit.Enforcement, func(e string) bool { return strings.HasPrefix(e, "mounts:") })
	if at < 0 || !strings.HasPrefix(r.exit.Enforcement[at], "mounts:"+ro1) || !strings.Contains(r.exit.Enforcement[at], ro2) {
		t.Errorf("expected %s and %s: %q", ro1, ro2, r.exit.Enforcement)
	}
	for name := range nodes {
		said := slices.ContainsFunc(r.exit.Enforcement, func(e string) bool {
			return strings.HasPrefix(e, "skip:mounts: ") && strings.Contains(e, s.path("out/"+name)+`"`)
		})
		if said == landlock {
			t.Errorf("%s is named: %v: %q", name, said, r.exit.Enforcement)
		}
	}
	// What is known before is refused where nothing may be missing.
	c = helper("--require-enforced", "--accept-skip", "cgroup-v2", "--accept-skip", "sockets")
	c.start(2, s.ws, "true")
	if r := c.collect(2); landlock == (r.fail != nil) || r.fail != nil && !strings.Contains(r.fail.Msg, "mounts") {
		t.Errorf("with --require-enforced: %+v", r.fail)
	}
	s.end(c.conn)
}
