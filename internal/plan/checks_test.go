package plan_test

import (
	"fmt"
	"strings"
	"testing"

	"sandboxd/internal/host"
	"sandboxd/protocol"
)

func TestChecks(t *testing.T) {
	c := hostCase{tree: func(t tree) {
		t.dir(ws + "/inner")
		t.dir(ws + "/.git/hooks")
		t.dir("/home/u/hidden/ws")
		t.put("/dev/kvm", host.Node{Kind: host.CharDevice, Rdev: 77})
	}, p: protocol.Policy{
		WritableRoots: []string{ws, ws + "/inner", "/home/u/hidden/ws"},
		ReadableRoots: []string{"/home/u/gone"},
		Protected:     []string{ws + "/.git/hooks", ws + "/gone", "/home/u/hidden", "/srv/elsewhere"},
		Mounts:        []protocol.Mount{rw("/dev/kvm")},
	}}
	d, err := c.build()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range d.pl.Checks() {
		got = append(got, fmt.Sprintf("%s %s %s rdev=%d known=%t", c.What, c.Path, c.List, c.Rdev, c.ID != host.ID{}))
	}
	want := []string{
		"root /home/u/ws writable_roots[0] rdev=0 known=true",
		"root /home/u/ws/inner writable_roots[1] rdev=0 known=true",
		"mount /dev/kvm mounts[0] rdev=77 known=true",
		"pin /home/u/ws/.git pin rdev=0 known=true",
		"mask /home/u/hidden protected[2] rdev=0 known=true",
		"mask /home/u/ws/.git/hooks protected[0] rdev=0 known=true",
		"placeholder /home/u/ws/gone protected[1] rdev=0 known=false",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
