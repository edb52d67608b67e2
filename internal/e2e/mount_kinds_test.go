//go:build linux

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sandboxd/internal/testenv"
	"sandboxd/protocol"
)

// Every kind of protected path, wherever it lies, in one jail.
func TestMountProtectedOfEveryKind(t *testing.T) {
	eachSite(t, func(t *testing.T, s *site) {
		names := []string{"file", "fifo", "sock", "dir", "dir/nested", "gitfile/hooks", "gone", "hard"}
		s.write("ws/file", "secret\n")
		s.write("ws/dir/nested", "secret\n")
		s.write("ws/gitfile", "gitdir: x\n")
		s.write("ws/hard", "secret\n")
		if err := os.Link(s.path("ws/hard"), s.path("ws/other")); err != nil {
			t.Fatal(err)
		}
		nodes := map[string]uint32{"fifo": unix.S_IFIFO, "sock": unix.S_IFSOCK}
		if os.Getuid() == 0 {
			nodes["device"] = unix.S_IFCHR
			names = append(names, "device")
		}
		for name, kind := range nodes {
			if err := unix.Mknod(s.path("ws/"+name), kind|0o666, int(unix.Mkdev(1, 3))); err != nil {
				t.Fatal(err)
			}
			s.own(s.path("ws/" + name))
		}
		s.write("ro/secret", "secret\n")
		p := s.policy(s.protect("ro/secret", "ro/gone"), func(p *protocol.Policy) {
			p.ReadableRoots = []string{s.path("ro")}
			p.Protected = append(p.Protected, "/etc/passwd", "/tmp/in/scratch", s.path("elsewhere"))
			for _, name := range names {
				p.Protected = append(p.Protected, s.path("ws/"+name))
			}
		})
		script := try + fmt.Sprintf("for f in %s ../ro/secret /etc/passwd; do\n", strings.Join(names, " ")) +
			`[ -p $f ] && echo "$f yes" && continue # opening one would wait
try "$f" "grep -q . $f || ls $f/* || : >$f || : >$f/x || mv $f m || ln $f m || rm -r $f"
done
for f in gone ../ro/gone /tmp/in/scratch ../elsewhere; do try "make $f" "mkdir -p $f/x || { mkdir -p $(dirname $f) && : >$f; }"; done
try "file for a directory" 'rm gitfile || mv gitfile m'
cat other
`
		want := ""
		for _, name := range append(names, "../ro/secret", "/etc/passwd") {
			want += name + " no\n"
		}
		want += "make gone no\nmake ../ro/gone no\nmake /tmp/in/scratch no\nmake ../elsewhere no\nfile for a directory no\nsecret\n"
		before := s.tree()
		r := s.jail(p, script)
		s.expect(r, want)
		s.unchanged(before)
		if got := mountSkips(r); !strings.Contains(got, `ws/hard`) || !strings.Contains(got, "2 hard links") {
			t.Errorf("the other name is not reported: %q", got)
		}
		if m := entry(t, r, "mounts"); !strings.Contains(m, ",absent=3,") {
			t.Errorf("report: %q", m)
		}
		r = s.jail(s.policy(func(p *protocol.Policy) { p.ReadableRoots = []string{s.path("ro")} }), script)
		if n := strings.Count(r.stdout, " yes\n"); n < len(names) {
			t.Errorf("the control: %q", r.stdout)
		}
	})
}

// Stage 2 is executed through a descriptor, so the program may be hidden itself.
func TestMountProgramIsProtected(t *testing.T) {
	eachSite(t, func(t *testing.T, s *site) {
		program := testenv.Binary(t)
		view := func(p *protocol.Policy) {
			p.ReadableRoots, p.Scratch = []string{"/"}, s.mkdir("scratch")
		}
		script := try + "try program test -s " + program + "\n"
		s.expect(s.jail(s.policy(view), script), "program yes\n")
		s.expect(s.jail(s.policy(view, func(p *protocol.Policy) { p.Protected = []string{program} }), script), "program no\n")
		if dir := filepath.Dir(program); dir != "/tmp" {
			s.expect(s.jail(s.policy(view, func(p *protocol.Policy) { p.Protected = []string{dir} }), script), "program no\n")
		}
	})
}
