package policy

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"sandboxd/protocol"
)

// drawPath makes short paths over few names, so that they meet; "a!" sorts between
// "a" and what is below "a" unless slashes are the lowest.
func drawPath(t *rapid.T) string {
	names := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "a!", "a\x01", "ab", "é"}), 0, 4).Draw(t, "names")
	return "/" + strings.Join(names, "/")
}

func beneath(path, dir string) bool {
	return dir == "/" || path == dir || strings.HasPrefix(path, dir+"/")
}

func TestTreeAgreesWithComparingAllPairs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		paths := rapid.SliceOfN(rapid.Custom(drawPath), 0, 12).Draw(t, "paths")
		path := drawPath(t)
		tr := newTree(paths)
		i, got := tr.above(treeKey(path))
		want := slices.ContainsFunc(paths, func(p string) bool { return beneath(path, p) })
		if got != want || got && !beneath(path, paths[i]) {
			t.Fatalf("above(%q) in %q: %v at %d, want %v", path, paths, got, i, want)
		}
		i, got = tr.below(treeKey(path))
		want = slices.ContainsFunc(paths, func(p string) bool { return beneath(p, path) })
		if got != want || got && !beneath(paths[i], path) {
			t.Fatalf("below(%q) in %q: %v at %d, want %v", path, paths, got, i, want)
		}
	})
}

func TestOverlapRulesAgreeWithComparingAllPairs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		paths := rapid.Custom(drawPath)
		p := plain(protected(rapid.SliceOfN(paths.Filter(func(s string) bool { return s != "/" }), 0, 6).Draw(t, "protected")...),
			writable(rapid.SliceOfN(paths, 0, 6).Draw(t, "writable")...))
		m := protocol.Mount{Path: paths.Filter(func(s string) bool { return s != "/" }).Draw(t, "mount"),
			Access: rapid.SampledFrom([]protocol.Access{"ro", "rw"}).Draw(t, "access")}
		p.Mounts = []protocol.Mount{m}
		bad := slices.ContainsFunc(p.Protected, func(s string) bool { return beneath(s, m.Path) || beneath(m.Path, s) })
		bad = bad || m.Access == "ro" && slices.ContainsFunc(p.WritableRoots, func(s string) bool { return beneath(s, m.Path) })
		if err := Validate(p); (err != nil) != bad {
			t.Fatalf("%+v: got %v, want refused: %v", p, err, bad)
		}
	})
}

// fullPolicy has as many entries as a policy may have, long and alike.
func fullPolicy(depth int) protocol.Policy {
	deep := strings.Repeat("/d", depth)
	p := plain()
	for i := range MaxEntries / 3 {
		p.Protected = append(p.Protected, fmt.Sprintf("/p%s/%d", deep, i))
		p.WritableRoots = append(p.WritableRoots, fmt.Sprintf("/w%s/%d", deep, i))
		p.Mounts = append(p.Mounts, protocol.Mount{Path: fmt.Sprintf("/p%s/m%d", deep, i), Access: protocol.ReadOnly})
	}
	return p
}

func BenchmarkValidate(b *testing.B) {
	for _, depth := range []int{4, 2000} {
		p := fullPolicy(depth)
		b.Run(fmt.Sprintf("entries=%d,bytes=%d", MaxEntries, 2*depth), func(b *testing.B) {
			for b.Loop() {
				if err := Validate(p); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkDecode(b *testing.B) {
	small, full := validPolicy().Append(nil), fullPolicy(20).Append(nil)
	for _, in := range [][]byte{small, full} {
		b.Run(fmt.Sprintf("bytes=%d", len(in)), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Decode(in); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
