package host

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func layout() Layout {
	d := Node{Kind: Dir}
	return Layout{
		"/": d, "/a": d, "/a/b": d, "/a/f": {Kind: File}, "/a/gone": {Kind: Missing}, "/shut": d, "/shut/x": {Kind: Denied},
		"/abs": {Kind: Link, Target: "/a/b"}, "/a/rel": {Kind: Link, Target: "b"}, "/a/b/up": {Kind: Link, Target: "../../a/./b/"},
		"/a/root": {Kind: Link, Target: "/"}, "/a/over": {Kind: Link, Target: "../../../a"}, "/a/dangling": {Kind: Link, Target: "gone/deep"},
		"/loop": {Kind: Link, Target: "loop2"}, "/loop2": {Kind: Link, Target: "/loop"}, "/self": {Kind: Link, Target: "self"},
		"/a/through": {Kind: Link, Target: "../abs/up/../f"}, "/a/badup": {Kind: Link, Target: "gone/../b"}, "/a/fileup": {Kind: Link, Target: "f/../b"},
		"/a/empty": {Kind: Link},
	}
}

func TestResolve(t *testing.T) {
	for _, c := range []struct {
		path, want string
		kind       Kind
		missing    string
		links      int
		err        error
	}{
		{"/", "/", Dir, "", 0, nil},
		{"/a/b", "/a/b", Dir, "", 0, nil},
		{"/abs", "/a/b", Dir, "", 1, nil},
		{"/a/rel", "/a/b", Dir, "", 1, nil},
		{"/abs/up/up", "/a/b", Dir, "", 3, nil},
		{"/a/root/a/f", "/a/f", File, "", 1, nil},
		{"/a/over/f", "/a/f", File, "", 1, nil},
		{"/a/through", "/a/f", File, "", 3, nil},
		{"/a/gone/x/y", "/a/gone/x/y", Missing, "/a/gone", 0, nil},
		{"/a/dangling/z", "/a/gone/deep/z", Missing, "/a/gone", 1, nil},
		{"/shut/x/y", "/shut/x/y", Denied, "", 0, nil},
		{"/a/b/never", "/a/b/never", Unknown, "", 0, nil},
		{"/a/f/x", "/a/f", File, "", 0, ErrNotDir},
		{"/a/fileup", "/a/f", File, "", 1, ErrNotDir},
		{"/loop", "", 0, "", -1, ErrLoop},
		{"/self/x", "", 0, "", -1, ErrLoop},
	} {
		r := layout().Resolve(c.path)
		if !errors.Is(r.Err, c.err) {
			t.Errorf("%s: error %v, want %v", c.path, r.Err, c.err)
		}
		if c.links < 0 {
			continue
		}
		if r.Path != c.want || r.Node.Kind != c.kind || r.Missing != c.missing || len(r.Links) != c.links {
			t.Errorf("%s: %+v, want %+v", c.path, r, c)
		}
	}
	for _, path := range []string{"/a/badup", "relative", "/a/empty"} {
		if r := layout().Resolve(path); r.Err == nil {
			t.Errorf("%s resolves to %q", path, r.Path)
		}
	}
}

func TestMaxHops(t *testing.T) {
	for _, n := range []int{MaxHops, MaxHops + 1} {
		l := Layout{"/": {Kind: Dir}, "/end": {Kind: Dir}}
		name := func(i int) string { return "/l" + strings.Repeat("x", i) }
		for i := range n {
			l[name(i)] = Node{Kind: Link, Target: name(i + 1)}
		}
		l[name(n)] = Node{Kind: Dir}
		if r := l.Resolve("/l"); (r.Err == nil) != (n == MaxHops) {
			t.Errorf("%d links: %v", n, r.Err)
		}
	}
}

// What resolves without an error is physical: no link among its components, and
// resolving it again changes nothing.
func TestResolveIsPhysical(t *testing.T) {
	l := layout()
	names := []string{"a", "b", "f", "abs", "rel", "up", "root", "over", "through", "dangling", "loop", "shut", "x", "gone"}
	rapid.Check(t, func(t *rapid.T) {
		path := "/" + strings.Join(rapid.SliceOfN(rapid.SampledFrom(names), 0, 6).Draw(t, "path"), "/")
		r := l.Resolve(path)
		if r.Err != nil {
			return
		}
		for at := r.Path; at != "/"; at = Parent(at) {
			if l[at].Kind == Link {
				t.Fatalf("%s resolves to %s, and %s is a link", path, r.Path, at)
			}
		}
		if again := l.Resolve(r.Path); again.Err != nil || again.Path != r.Path || len(again.Links) != 0 {
			t.Fatalf("%s, then %+v", r.Path, again)
		}
	})
}

func TestPathHelpers(t *testing.T) {
	for _, c := range []struct {
		path, dir string
		want      bool
	}{{"/a", "/", true}, {"/", "/", true}, {"/a/b", "/a", true}, {"/a", "/a", true}, {"/ab", "/a", false}, {"/", "/a", false}} {
		if Beneath(c.path, c.dir) != c.want {
			t.Errorf("Beneath(%q, %q) = %t", c.path, c.dir, !c.want)
		}
	}
	for in, want := range map[[2]string]string{{"/a", "b"}: "/a/b", {"/a/b", "../c"}: "/a/c", {"/", "../.."}: "/", {"/a", "/b/./c"}: "/b/c"} {
		if got := Clean(in[0], in[1]); got != want {
			t.Errorf("Clean%q = %q, want %q", in, got, want)
		}
	}
	if Parent("/a") != "/" || Parent("/") != "/" || Join("/", "a") != "/a" || Join("/a", "b") != "/a/b" {
		t.Error("Parent or Join")
	}
}
