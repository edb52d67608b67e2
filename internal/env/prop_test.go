package env

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"sandboxd/internal/host"
)

// drawLayout makes a small tree of directories, files and links of any kind.
func drawLayout(t *rapid.T) host.Layout {
	l := layout()
	for range rapid.IntRange(0, 25).Draw(t, "nodes") {
		var dirs []string
		for path, n := range l {
			if n.Kind == host.Dir {
				dirs = append(dirs, path)
			}
		}
		slices.Sort(dirs)
		path := host.Join(rapid.SampledFrom(dirs).Draw(t, "dir"), drawName(t))
		n := host.Node{Kind: rapid.SampledFrom([]host.Kind{host.Dir, host.Dir, host.Dir, host.File, host.Link, host.Missing}).Draw(t, "kind")}
		if n.Kind == host.Link {
			n.Target = drawSpelling(t, rapid.SampledFrom([]string{"/", "", "../"}).Draw(t, "start"))
		}
		add(l, path, n)
	}
	return l
}

func drawName(t *rapid.T) string {
	return rapid.SampledFrom([]string{"a", "b", "bin", "usr", "local"}).Draw(t, "name")
}

func drawSpelling(t *rapid.T, start string) string {
	names := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "bin", "usr", "local", ".", ".."}), 1, 5).Draw(t, "names")
	return start + strings.Join(names, "/")
}

func drawPath(t *rapid.T) string {
	var dirs []string
	for range rapid.IntRange(0, 5).Draw(t, "length") {
		dirs = append(dirs, drawSpelling(t, rapid.SampledFrom([]string{"/", "/", "/", "", "//"}).Draw(t, "start")))
	}
	return strings.Join(dirs, ":")
}

func drawInput(t *rapid.T) Input {
	in := Input{Layout: drawLayout(t), HelperPath: drawPath(t),
		Allow: rapid.SliceOf(rapid.SampledFrom([]string{"PATH", "LANG", "TMPDIR", ScratchName, "A", "LC_ALL"})).Draw(t, "allow"),
		Request: rapid.MapOf(rapid.SampledFrom([]string{"LANG", "TMPDIR", ScratchName, "A", "B", "LC_ALL", "LD_PRELOAD"}),
			rapid.SampledFrom([]string{"", "/a", "/usr/bin", "x"})).Draw(t, "request"),
		Scratch: rapid.SampledFrom([]string{"", "/a", "/tmp"}).Draw(t, "scratch"), Tmpfs: rapid.Bool().Draw(t, "tmpfs"),
	}
	in.Request["PATH"] = drawPath(t)
	var known []string
	for path := range in.Layout {
		known = append(known, path)
	}
	slices.Sort(known)
	in.Writable = rapid.SliceOfN(rapid.SampledFrom(known), 0, 3).Draw(t, "writable")
	return in
}

func TestPropertiesOfEveryEnvironment(t *testing.T) {
	kept := 0
	rapid.Check(t, func(t *rapid.T) {
		in := drawInput(t)
		r := Build(in)
		if !slices.IsSorted(r.Env) {
			t.Fatalf("not sorted: %q", r.Env)
		}
		seen := map[string]bool{}
		for _, kv := range r.Env {
			name, _, _ := strings.Cut(kv, "=")
			if seen[name] || !slices.Contains(in.Allow, name) {
				t.Fatalf("%s is there twice or not allowed %q: %q", name, in.Allow, r.Env)
			}
			seen[name] = true
		}
		path, has := get(r, "PATH")
		if has != slices.Contains(in.Allow, "PATH") || has && path != NoPath && path != strings.Join(r.Path, ":") {
			t.Fatalf("PATH %q %v, directories %q", path, has, r.Path)
		}
		for i, dir := range r.Path {
			kept++
			checkDir(t, in, dir, slices.Index(r.Path, dir) == i)
		}
		if again := Build(in); !slices.Equal(again.Env, r.Env) || !slices.Equal(again.Path, r.Path) {
			t.Fatalf("twice is not the same: %q %q", r.Env, again.Env)
		}
	})
	if kept == 0 {
		t.Error("no directory was ever kept, so nothing was tested")
	}
}

// checkDir asks a directory of PATH for everything that the design promises of it.
func checkDir(t *rapid.T, in Input, dir string, first bool) {
	res := in.Layout.Resolve(dir)
	if !first || res.Err != nil || res.Node.Kind != host.Dir || res.Path != dir || len(res.Links) > 0 {
		t.Fatalf("%q is repeated, no directory, or not resolved: %+v", dir, res)
	}
	for _, w := range append([]string{in.Scratch}, in.Writable...) {
		if w != "" && w != "/" && host.Beneath(dir, w) || w == "/" && dir == "/" {
			t.Fatalf("%q is under the writable %q", dir, w)
		}
	}
}

// What Dirs names is enough: a layout cut down to the walks of those paths gives
// the same environment for PATHs without "..", and never a directory more.
func TestDirsIsEnough(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawInput(t)
		in.Writable = nil // named by physical path, and surveyed by the plan
		full := Build(in)
		cut := in
		cut.Layout = walked(in.Layout, Dirs(in.Request, in.HelperPath))
		got := Build(cut)
		for _, dir := range got.Path {
			if !slices.Contains(full.Path, dir) {
				t.Fatalf("%q is on the PATH of the smaller layout only", dir)
			}
		}
		if !strings.Contains(in.Request["PATH"]+in.HelperPath, "..") && !slices.Equal(got.Env, full.Env) {
			t.Fatalf("got %q\nwant %q", got.Env, full.Env)
		}
	})
}

// walked keeps what resolving the paths meets. A resolution that ended at something
// unknown, also in front of a ".." of a link, goes on once that is there.
func walked(l host.Layout, paths []string) host.Layout {
	out := host.Layout{"/": l["/"]}
	for _, path := range paths {
		for more := true; more; {
			more = false
			for at := out.Resolve(path).Path; at != "/"; at = host.Parent(at) {
				n, exists := l[at]
				if _, known := out[at]; exists && !known {
					out[at], more = n, true
				}
			}
		}
	}
	return out
}
