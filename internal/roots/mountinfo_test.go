package roots

import (
	"reflect"
	"strings"
	"testing"

	"sandboxd/internal/procfs"
)

func TestParseMountinfo(t *testing.T) {
	got, err := ParseMountinfo([]byte(
		"26 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n" +
			"30 26 0:27 /sub /mnt/with\\040space\\134and\\011more rw,nosuid shared:2 master:1 - tmpfs tm\\040pfs rw\n" +
			"31 26 0:28 / /ro ro,relatime - ext4 /dev/vdb rw,errors=ro\n" +
			"32 26 0:29 / /roots rw,root - ext4 /dev/vdc ro\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := []Mount{
		{26, 1, "254:0", "/", "/", "ext4", false},
		{30, 26, "0:27", "/sub", "/mnt/with space\\and\tmore", "tmpfs", false},
		{31, 26, "0:28", "/", "/ro", "ext4", true},
		{32, 26, "0:29", "/", "/roots", "ext4", true},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v", got)
	}
	for _, bad := range []string{
		"x", "26 1 254:0 / / rw", "26 1 254:0 / / rw -", "26 1 254:0 / relative rw - ext4 d rw",
		"x 1 254:0 / / rw - ext4 d rw", "26 1 254:0 / /a\\9 rw - ext4 d rw", "26 1 254:0 / /a\\777 rw - ext4 d rw",
	} {
		if m, err := ParseMountinfo([]byte(bad)); err == nil {
			t.Errorf("%q gave %+v", bad, m)
		}
	}
}

func TestMountAt(t *testing.T) {
	mounts := []Mount{{1, 0, "8:1", "/", "/", "ext4", false}, {2, 1, "8:2", "/", "/home", "ext4", true}, {3, 1, "8:1", "/data", "/home", "ext4", false}, {4, 3, "8:3", "/", "/home/u", "ext4", true}, {5, 4, "8:3", "/", "/home/u/w", "ext4", false}}
	for _, c := range []struct {
		dir  string
		id   uint64
		want tree
	}{
		{"/etc", 0, tree{"8:1", "/etc"}},
		{"/home/x", 0, tree{"8:1", "/data/x"}}, // the later mount covers the earlier
		{"/home/x", 2, tree{"8:2", "/x"}},
		{"/home", 0, tree{"8:1", "/data"}},
		{"/home/u", 0, tree{"8:3", "/"}},
		{"/homely", 0, tree{"8:1", "/homely"}},
		{"/", 0, tree{"8:1", "/"}},
	} {
		m, ok := mountAt(mounts, c.dir, c.id)
		if got := (tree{m.Dev, rebase(c.dir, m.Point, m.Root)}); !ok || got != c.want {
			t.Errorf("%s: %v, want %v", c.dir, got, c.want)
		}
	}
}

func TestReadOnlyMounts(t *testing.T) {
	mounts := []Mount{{Point: "/"}, {Point: "/a", ReadOnly: true}, {Point: "/a/w"}, {Point: "/b", ReadOnly: true}, {Point: "/b"}, {Point: "/c"}, {Point: "/c", ReadOnly: true}}
	readOnly := ReadOnly(mounts)
	for path, want := range map[string]bool{"/": false, "/a": true, "/a/x": true, "/ab": false, "/a/w": false, "/a/w/x": false, "/b/x": false, "/c/x": true, "/d": false} {
		if readOnly(path) != want {
			t.Errorf("%s: %v", path, !want)
		}
	}
	if ReadOnly([]Mount{{Point: "/", ReadOnly: true}})("/x") != true {
		t.Error("a host that is read-only")
	}
}

// escape is the kernel's mangling, for the way there and back.
var escape = strings.NewReplacer("\\", "\\134", " ", "\\040", "\t", "\\011", "\n", "\\012", "#", "\\043")

func FuzzParseMountinfo(f *testing.F) {
	f.Add([]byte("26 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n"))
	f.Add([]byte("30 26 0:27 /s\\040b /m\\134t rw,nosuid shared:2 - tmpfs t rw"))
	f.Add([]byte("1 1 0:1 / /\\ rw - a b c"))
	f.Fuzz(func(t *testing.T, data []byte) {
		mounts, err := ParseMountinfo(data)
		if err != nil {
			return
		}
		for _, m := range mounts {
			if !strings.HasPrefix(m.Point, "/") {
				t.Errorf("mount point %q", m.Point)
			}
			if back, ok := procfs.Unescape(escape.Replace(m.Point)); !ok || back != m.Point {
				t.Errorf("%q becomes %q", m.Point, back)
			}
		}
	})
}
