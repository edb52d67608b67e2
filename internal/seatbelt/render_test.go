package seatbelt

import (
	"slices"
	"strings"
	"testing"

	"sandboxd/protocol"
)

func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		name, want string
		p          protocol.Policy
		edit       func(*Options)
	}{
		{"helper in a writable root", "a command could replace it", roots("/opt/sandboxd"), func(*Options) {}},
		{"helper in the user's directory", "a command could replace it", roots(ws), func(o *Options) { o.UserDirs = []string{"/opt"} }},
		{"helper through a link", "symbolic link", roots(ws), func(o *Options) { o.Helper = "/tmp/sandboxd" }},
		{"helper under a protected path", "hides it", protocol.Policy{Protected: []string{"/opt/sandboxd"}}, func(*Options) {}},
		{"user directory by its unresolved name", `"/private/var"`, roots(ws), func(o *Options) { o.Layout = nil; o.UserDirs = []string{"/var/folders/ab"} }},
		{"user directory that is not clean", "not absolute and clean", roots(ws), func(o *Options) { o.UserDirs = []string{"/private//var"} }},
		{"the layout has a link in a granted path", "symbolic link", roots(ws), func(o *Options) { o.Layout["/Users"] = o.Layout["/tmp"] }},
		{"the layout has another spelling in a granted path", "symbolic link", roots(ws), func(o *Options) { o.Layout["/Users"] = o.Layout["/users"] }},
		{"a grant by the data volume's name", "usual names", roots(ws), func(o *Options) { o.UserDirs = []string{dataVolume + "/private/var/folders/ab"} }},
		{"a root that only the data volume has", "take it out", protocol.Policy{ReadableRoots: []string{"/home"}}, func(*Options) {}},
		{"all devices for writing", "disks", roots("/dev"), func(*Options) {}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newMac(t, c.p, nil)
			if _, err := Render(m.plan, m.o); err != nil {
				if c.name != "a root that only the data volume has" && c.name != "helper in a writable root" && c.name != "helper under a protected path" && c.name != "all devices for writing" {
					t.Fatalf("refused before the change: %v", err)
				}
			}
			c.edit(&m.o)
			_, err := Render(m.plan, m.o)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
}

func TestArgs(t *testing.T) {
	p := Profile{Text: "(version 1)", Params: []Param{{"P0", "/a b=c"}, {"P1", "-p"}}}
	if got, want := p.Args(""), []string{"-D", "P0=/a b=c", "-D", "P1=-p", "-p", "(version 1)"}; !slices.Equal(got, want) {
		t.Errorf("Args = %q, want %q", got, want)
	}
	if got, want := p.Args("/f"), []string{"-D", "P0=/a b=c", "-D", "P1=-p", "-f", "/f"}; !slices.Equal(got, want) {
		t.Errorf("Args = %q, want %q", got, want)
	}
}

// A path cannot become text of the profile, whatever is in it.
func TestHostileNames(t *testing.T) {
	evil := "/Users/u/ws/\")) (allow default) (deny file-read* (literal \""
	m := newMac(t, protocol.Policy{WritableRoots: []string{ws}, Protected: []string{evil, ws + "/a.b+c(d)[e]{f}^$|*?\\"}}, nil)
	p := m.render(t)
	if strings.Contains(p.Text, "allow default") {
		t.Error("a path became text")
	}
	e := read(t, p)
	if e.Write(evil) || !e.Write(ws+"/aXb") || e.Write(ws+"/A.B+C(D)[E]{F}^$|*?\\/x") {
		t.Error("the profile does not hold for such names")
	}
}

func TestDigest(t *testing.T) {
	a, b := newMac(t, roots(ws), nil).render(t), newMac(t, roots("/Users/u/cache"), nil).render(t)
	if again := newMac(t, roots(ws), nil).render(t); a.Digest != again.Digest || len(a.Digest) != 16 {
		t.Errorf("digests %q and %q of one plan", a.Digest, again.Digest)
	}
	if a.Digest == b.Digest || a.Text != b.Text {
		t.Error("another parameter does not change the digest, or changes the text")
	}
}
