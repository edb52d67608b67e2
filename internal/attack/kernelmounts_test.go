//go:build linux

package attack

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sandboxd/internal/testenv"
	"sandboxd/protocol"
)

// opens says of each path whether it can be opened, "w:PATH" for writing: "@opens
// PATH...". It writes nothing.
func opens(args []string) int {
	for _, arg := range args {
		flags, path := unix.O_RDONLY, strings.TrimPrefix(arg, "w:")
		if path != arg {
			flags = unix.O_WRONLY
		}
		fd, err := unix.Open(path, flags|unix.O_NONBLOCK, 0)
		fmt.Printf("%s\t%v\n", arg, err == nil)
		if err == nil {
			unix.Close(fd)
		}
	}
	fmt.Println("end")
	return 0
}

// What the host has mounted of the kernel's inside a grant, as in the tree of a chroot
// that is being built, comes along with a recursive bind: the processes of the host
// and their files, and for uid 0 its settings, whatever capabilities are gone.
func TestKernelFileSystemsInsideAGrant(t *testing.T) {
	testenv.EachUser(t, func(t *testing.T, u testenv.User) {
		s := newScene(t, u, nil)
		mount := func(rel, fs string) {
			at := filepath.Join(s.Base, rel)
			ok(t, os.MkdirAll(at, 0o755))
			if err := unix.Mount(fs, at, fs, 0, ""); err != nil {
				testenv.Skip(t, "mount", "cannot mount: "+err.Error())
			}
			t.Cleanup(func() { _ = unix.Unmount(at, unix.MNT_DETACH) })
		}
		ok(t, os.MkdirAll(filepath.Join(s.Base, "mounted"), 0o755), os.MkdirAll(filepath.Join(s.Base, "ws/tree/etc"), 0o755))
		for rel, fs := range map[string]string{"ws/tree/proc": "proc", "ws/tree/sys": "sysfs", "ws/tree/mq": "mqueue",
			"ro/tree/proc": "proc", "mounted/proc": "proc", "mounted/sys": "sysfs"} {
			mount(rel, fs)
		}
		s.give("ws/tree", "ws/tree/etc", "mounted")
		p := s.policy(nil)
		p.Mounts = []protocol.Mount{{Path: filepath.Join(s.Base, "mounted"), Access: protocol.ReadWrite, Required: true}}
		pid := s.Victim.PID
		var paths []string
		for _, proc := range []string{"ws/tree/proc", "ro/tree/proc", "mounted/proc"} {
			paths = append(paths, fmt.Sprintf("%s/%s/%d/cmdline", s.Base, proc, pid), fmt.Sprintf("%s/%s/%d/root/etc", s.Base, proc, pid),
				fmt.Sprintf("%s/%s/%d/environ", s.Base, proc, pid))
			if u.UID == 0 {
				paths = append(paths, "w:"+s.Base+"/"+proc+"/sys/kernel/core_pattern")
			}
		}
		paths = append(paths, s.Base+"/ws/tree/mq/"+s.Victim.Queue)
		if u.UID == 0 {
			for _, sys := range []string{"ws/tree/sys", "mounted/sys"} {
				for _, file := range []string{"power/state", "kernel/uevent_helper", "kernel/mm/ksm/run", "kernel/profiling"} {
					if _, err := os.Stat("/sys/" + file); err == nil {
						paths = append(paths, "w:"+s.Base+"/"+sys+"/"+file)
					}
				}
			}
		}
		out, err := testenv.As(t, exec.Command(s.program(), append([]string{"@opens"}, paths...)...), u).Output()
		control := string(out)
		if err != nil || !strings.HasSuffix(control, "end\n") || strings.Contains(control, "\tfalse\n") {
			t.Fatalf("the control: %v\n%s", err, control)
		}
		for _, root := range []bool{false, true} {
			if root { // the same under a writable "/", with /sys itself
				p.WritableRoots = append(p.WritableRoots, "/")
				if u.UID == 0 {
					paths = append(paths, "w:/sys/power/state")
				}
			}
			h := start(t, u, p, nil)
			h.greet()
			b := s.start(append([]string{s.program(), "@opens"}, paths...)...)
			b.Policy = p.Append(nil)
			r := h.run(2, b)
			if r.exit == nil || r.exit.Code != 0 || !strings.HasSuffix(r.stdout, "end\n") {
				t.Fatalf("%v: %+v, %+v, %s", root, r.exit, r.fail, r.stderr)
			}
			for _, line := range strings.Split(r.stdout, "\n") {
				if strings.HasSuffix(line, "\ttrue") {
					t.Errorf("%v: it got in: %s", root, line)
				}
			}
			// What is beside them stays, and /sys can be read.
			b.Argv = []string{"/bin/sh", "-c", "echo x >tree/etc/own && cat tree/etc/own && test -d tree/sys/kernel && echo looked"}
			if r := h.run(3, b); r.stdout != "x\nlooked\n" {
				t.Errorf("%v: %q, %+v, %+v, %s", root, r.stdout, r.exit, r.fail, r.stderr)
			}
			if code := h.end(); code != 0 {
				t.Errorf("the helper's exit is %d", code)
			}
		}
		// A policy that names one has it.
		p.WritableRoots = []string{s.Base + "/ws", s.Base + "/ws/tree/proc"}
		h := start(t, u, p, nil)
		h.greet()
		b := s.start(append([]string{s.program(), "@opens"}, paths[0])...)
		if r := h.run(2, b); r.stdout != paths[0]+"\ttrue\nend\n" {
			t.Errorf("by name: %q, %+v, %+v", r.stdout, r.exit, r.fail)
		}
	})
}

// give gives a few paths to the user.
func (s *scene) give(rels ...string) {
	for _, rel := range rels {
		ok(s.t, os.Lchown(filepath.Join(s.Base, rel), s.u.UID, s.u.GID))
	}
}
