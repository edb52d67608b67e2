package bwrap_test

import (
	"fmt"
	"testing"

	"sandboxd/internal/bwrap"
	"sandboxd/internal/host"
	"sandboxd/internal/plan"
	"sandboxd/protocol"
)

// roots is a policy with n writable roots, each with protected hooks, on a host
// that has them.
func roots(n int) (protocol.Policy, host.Facts) {
	p := protocol.Policy{Network: protocol.Network{Mode: protocol.NetOff}, Scratch: protocol.ScratchTmpfs}
	l := host.Layout{}
	dir := func(path string) {
		for at := path; ; at = host.Parent(at) {
			if _, ok := l[at]; !ok {
				l[at] = host.Node{Kind: host.Dir, ID: host.ID{Dev: 1, Ino: uint64(len(l) + 1)}, Mode: 0o755, UID: 1000, GID: 1000}
			}
			if at == "/" {
				return
			}
		}
	}
	dir("/tmp")
	for i := range n {
		root := fmt.Sprintf("/srv/%04d/root", i)
		dir(root + "/.git/hooks")
		p.WritableRoots = append(p.WritableRoots, root)
		if i < 500 { // more masks than that are more arguments than bubblewrap takes
			p.Protected = append(p.Protected, root+"/.git/hooks")
		}
	}
	f := host.Facts{OS: "linux", UID: 1000, GID: 1000, TotalRAM: 1 << 30, LandlockABI: 7}
	for _, path := range plan.Paths(p, f) {
		if _, ok := l[path]; !ok {
			l[path] = host.Node{Kind: host.Missing}
		}
	}
	f.Layout = l
	return p, f
}

var allFlags = map[string]bool{"bind-fd": true, "ro-bind-fd": true, "perms": true, "size": true,
	"unshare-cgroup": true, "die-with-parent": true, "cap-drop": true, "disable-userns": true}

// BenchmarkPlanAndRender is what the pure half of an execution costs.
func BenchmarkPlanAndRender(b *testing.B) {
	for _, n := range []int{10, 100, 1000} {
		p, f := roots(n)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				pl, err := plan.Build(p, f)
				if err != nil {
					b.Fatal(err)
				}
				plan.AuditOf(pl, p)
				pl.Checks()
				if _, err := bwrap.Render(pl, bwrap.Options{FirstFD: 4, Flags: allFlags}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/root")
		})
	}
}
