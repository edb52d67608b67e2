package stage2

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sandboxd/internal/stage2/spec"
	"sandboxd/internal/testenv"
)

// viewOf is a small jail, and a host with mounts in and beside what it binds.
func viewOf() spec.View {
	return spec.View{
		Mounts: []spec.Mount{
			{Path: "/", Holds: spec.HoldsFresh, ReadOnly: true},
			{Path: "/usr", Holds: spec.HoldsTree, ReadOnly: true},
			{Path: "/w s", Holds: spec.HoldsTree},
			{Path: "/proc", Holds: spec.HoldsFresh, ReadOnly: true},
			{Path: "/dev", Holds: spec.HoldsFresh, ReadOnly: true},
			{Path: "/dev/null", Holds: spec.HoldsFile, Optional: true},
			{Path: "/dev/tty", Holds: spec.HoldsFile, Optional: true},
			{Path: "/w s/disk", Holds: spec.HoldsTree},
			{Path: "/w s/.env", Holds: spec.HoldsFile, ReadOnly: true},
		},
		Host:    []spec.HostMount{{Path: "/usr/local", Device: "8:3"}, {Path: "/w s/disk", Device: "8:4"}},
		Devices: []string{"8:1", "8:3", "8:4", "0:5"},
	}
}

const table = `1 0 0:40 /newroot / ro,nosuid - tmpfs tmpfs rw
2 1 8:1 /usr /usr ro,nosuid master:1 - ext4 /dev/a rw
3 2 8:3 / /usr/local ro - ext4 /dev/b rw
4 1 8:1 /home/u/w /w\040s rw - ext4 /dev/a rw
5 4 8:4 / /w\040s/disk rw - ext4 /dev/c rw
6 1 0:41 / /proc ro,relatime - proc proc rw
7 6 0:41 /irq /proc/irq ro - proc proc rw
8 1 0:42 / /dev ro - tmpfs tmpfs rw
9 8 0:5 /null /dev/null rw - devtmpfs udev rw
10 5 8:4 / /w\040s/disk rw - ext4 /dev/c rw
11 4 0:43 /mask /w\040s/.env ro - tmpfs tmpfs rw
`

func TestView(t *testing.T) {
	without := func(part string) func(string) string {
		return func(s string) string {
			var kept []string
			for _, line := range strings.SplitAfter(s, "\n") {
				if !strings.Contains(line, part) {
					kept = append(kept, line)
				}
			}
			return strings.Join(kept, "")
		}
	}
	more := func(line string) func(string) string { return func(s string) string { return s + line + "\n" } }
	for _, c := range []struct {
		name, want string
		change     func(string) string
	}{
		{"as planned", "", func(s string) string { return s }},
		{"a mount of the host is gone", "", without("/usr/local")},
		{"the host mounted another disk", "", more(`12 2 8:9 / /usr/disk rw - ext4 /dev/d rw`)},
		{"a device that bubblewrap may bind", "", more(`12 8 0:5 /tty /dev/tty rw - devtmpfs udev rw`)},
		{"no view at all", `"/" is not mounted`, func(string) string { return "" }},
		{"a bind is missing", `"/usr" is not mounted`, without(" /usr ")},
		{"a mask is missing", `"/w s/.env" is not mounted`, without(".env")},
		{"the bind over a mount of the host is missing", "", without("10 5")}, // its copy is the same file system
		{"neither is there", `"/w s/disk" is not mounted`, without("/disk")},
		{"read-only is not", `"/usr" is mounted writable`, func(s string) string { return strings.Replace(s, "/usr ro", "/usr rw", 1) }},
		{"the seal is missing", `"/" is mounted writable`, func(s string) string { return strings.Replace(s, "/ ro", "/ rw", 1) }},
		{"the host's root beside it", `"/host" is mounted and in no plan`, more(`12 1 8:1 / /host rw - ext4 /dev/a rw`)},
		{"the host's home in a bind", `"/usr/home" is mounted and in no plan`, more(`12 2 8:1 /home /usr/home rw - ext4 /dev/a rw`)},
		{"a mount of the host at another place", `"/usr/b" is mounted and in no plan`, more(`12 2 8:3 / /usr/b ro - ext4 /dev/b rw`)},
		{"another one at a host's place", `"/usr/local" is mounted and in no plan`, more(`12 2 8:1 /home /usr/local rw - ext4 /dev/a rw`)},
		{"over a planned one", `"/w s" is mounted over`, more(`12 4 8:1 /home /w\040s rw - ext4 /dev/a rw`)},
		{"over a planned one and the host's", `"/w s/disk" is mounted over`, more(`12 10 8:1 /home /w\040s/disk rw - ext4 /dev/a rw`)},
		{"the host's /proc in the fresh one", `"/proc/sys" is mounted and in no plan`, more(`12 6 0:21 /sys /proc/sys rw - proc proc rw`)},
		{"a device too many", `"/dev/kvm" is mounted and in no plan`, more(`12 8 0:5 /kvm /dev/kvm rw - devtmpfs udev rw`)},
		{"below a file", `"/w s/.env/x" is mounted and in no plan`, more(`12 11 0:77 / /w\040s/.env/x rw - tmpfs tmpfs rw`)},
		{"a line of another form", "unknown form", more("12 8 0:5")},
	} {
		got := newView(viewOf()).difference([]byte(c.change(table)))
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

// BenchmarkView is what the comparison adds to the reading of the table.
func BenchmarkView(b *testing.B) {
	for b.Loop() {
		newView(viewOf()).difference([]byte(table))
	}
}

// jailView is the view that world's bubblewrap makes.
func jailView(t *testing.T, w world) spec.View {
	t.Helper()
	b, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	v := spec.View{Mounts: []spec.Mount{
		{Path: "/", Holds: spec.HoldsTree, ReadOnly: true}, {Path: w.dir, Holds: spec.HoldsTree},
		{Path: "/dev", Holds: spec.HoldsFresh}, {Path: "/dev/pts", Holds: spec.HoldsFresh},
		{Path: "/proc", Holds: spec.HoldsFresh, ReadOnly: true},
	}}
	for _, name := range []string{"null", "zero", "full", "random", "urandom", "tty"} {
		v.Mounts = append(v.Mounts, spec.Mount{Path: "/dev/" + name, Holds: spec.HoldsFile})
	}
	for line := range strings.Lines(string(b)) {
		m, _, ok := parseMount([]byte(line))
		if !ok {
			t.Fatalf("cannot read %q", line)
		}
		if m.Path != "/" {
			v.Host = append(v.Host, m)
		}
		v.Devices = append(v.Devices, m.Device)
	}
	return v
}

// The kernel's table of a real jail is the planned one, and one bind more is noticed.
func TestViewOfARealJail(t *testing.T) {
	eachWorld(t, func(t *testing.T, w world) {
		if !w.jailed {
			return
		}
		s := w.spec("true")
		s.View = jailView(t, w)
		if got := w.run(t, s.Append(nil)).report(t).Mounts; got != uint64(len(s.View.Mounts)) {
			t.Errorf("%d mounts are reported, %d were planned", got, len(s.View.Mounts))
		}
		sub := filepath.Join(w.dir, "a b")
		if err := os.Mkdir(sub, 0o755); err != nil {
			t.Fatal(err)
		}
		w.extra = []string{"--bind", "/usr/share", sub}
		if f := w.run(t, s.Append(nil)).failure(t); f.Step != spec.StepView || !strings.Contains(f.Msg, fmt.Sprintf("%q is mounted and in no plan", sub)) {
			t.Errorf("a bind more: %+v", f)
		}
		s.View.Mounts = append(s.View.Mounts, spec.Mount{Path: sub, Holds: spec.HoldsTree, ReadOnly: true})
		if f := w.run(t, s.Append(nil)).failure(t); f.Step != spec.StepView || !strings.Contains(f.Msg, "writable") {
			t.Errorf("planned read-only: %+v", f)
		}
	})
}

// What --cap-drop ALL and --disable-userns must have done, with the real bubblewrap,
// without each of them, and without a jail.
func TestPrivilegesLeft(t *testing.T) {
	eachWorld(t, func(t *testing.T, w world) {
		s := w.spec("true")
		s.NoCaps, s.NoUserns = true, true
		if w.jailed {
			if r := w.run(t, s.Append(nil)).report(t); !r.NoCaps || !r.NoUserns {
				t.Errorf("report %+v", r)
			}
			w.without = []string{"--disable-userns"}
			if f := w.run(t, s.Append(nil)).failure(t); f.Step != spec.StepPrivileges || !strings.Contains(f.Msg, "a user namespace can be made") {
				t.Errorf("without --disable-userns: %+v", f)
			}
			w.without = []string{"--cap-drop", "ALL"}
		}
		// A caller who is not root has none to drop (user_namespaces(7): execve).
		if root := w.user.UID == 0; root {
			if f := w.run(t, s.Append(nil)).failure(t); f.Step != spec.StepPrivileges || !strings.Contains(f.Msg, "are left") {
				t.Errorf("capabilities left: %+v", f)
			}
		}
	})
}

// What nobody asked about is not claimed.
func TestViewAndPrivilegesAreOnlyAnswers(t *testing.T) {
	w := newWorld(t, testenv.Me(), false)
	if r := w.run(t, w.spec("true").Append(nil)).report(t); r.NoUserns || r.NoCaps || r.Mounts != 0 {
		t.Errorf("report %+v", r)
	}
}
