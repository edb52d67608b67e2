package proctrack

import (
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func pids(list []Proc) []int32 {
	var out []int32
	for _, p := range list {
		out = append(out, p.PID)
	}
	return out
}

var root = Proc{PID: 10, PPID: 1, Born: 100}

func TestCapture(t *testing.T) {
	init := Proc{PID: 1, Born: 1}
	for _, c := range []struct {
		name  string
		snaps []Snapshot
		want  []int32
	}{
		{"the root alone", []Snapshot{{init, root}}, []int32{10}},
		{"children and grandchildren, siblings in the snapshot's order", []Snapshot{{init, {PID: 30, PPID: 10, Born: 102}, root, {PID: 20, PPID: 10, Born: 101}, {PID: 31, PPID: 30, Born: 103}}}, []int32{10, 30, 20, 31}},
		{"others' processes are not ours", []Snapshot{{init, root, {PID: 50, PPID: 1, Born: 100}, {PID: 51, PPID: 50, Born: 101}}}, []int32{10}},
		{"one that was re-parented is remembered", []Snapshot{
			{init, root, {PID: 20, PPID: 10, Born: 101}, {PID: 21, PPID: 20, Born: 102}},
			{init, root, {PID: 21, PPID: 1, Born: 102}},
		}, []int32{10, 21}},
		{"its later children too", []Snapshot{
			{init, root, {PID: 20, PPID: 10, Born: 101}},
			{init, {PID: 20, PPID: 1, Born: 101}, {PID: 22, PPID: 20, Born: 103}},
		}, []int32{20, 22}},
		{"the root has ended, its children live", []Snapshot{
			{init, root, {PID: 20, PPID: 10, Born: 101}},
			{init, {PID: 20, PPID: 1, Born: 101}},
		}, []int32{20}},
		{"a reused number is somebody else", []Snapshot{
			{init, root, {PID: 20, PPID: 10, Born: 101}},
			{init, root, {PID: 20, PPID: 1, Born: 500}, {PID: 21, PPID: 20, Born: 501}},
		}, []int32{10}},
		{"the root's number is reused", []Snapshot{{init, root}, {init, {PID: 10, PPID: 1, Born: 900}, {PID: 11, PPID: 10, Born: 901}}}, nil},
		{"a parent that is younger than its child is none", []Snapshot{{init, {PID: 10, PPID: 1, Born: 100}, {PID: 20, PPID: 10, Born: 99}}}, []int32{10}},
		{"a shrunken snapshot forgets only who is gone", []Snapshot{
			{init, root, {PID: 20, PPID: 10, Born: 101}, {PID: 21, PPID: 20, Born: 102}, {PID: 22, PPID: 21, Born: 103}},
			{root},
			{init, root, {PID: 40, PPID: 10, Born: 110}},
		}, []int32{10, 40}},
		{"a ring of parents ends", []Snapshot{{root, {PID: 20, PPID: 21, Born: 101}, {PID: 21, PPID: 20, Born: 101}}}, []int32{10}},
		{"its own parent", []Snapshot{{{PID: 10, PPID: 10, Born: 100}}}, []int32{10}},
		{"an empty table", []Snapshot{{init, root}, {}}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			tr := New(root)
			var got []int32
			for _, s := range c.snaps {
				got = pids(tr.Capture(s))
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("living %v, want %v", got, c.want)
			}
		})
	}
}

// The set does not depend on the order of the rows, and heads of an earlier, larger
// snapshot do not show.
func TestReorderedAndShrunken(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Snapshot{{PID: 1, Born: 1}, root}
		for i := range rapid.IntRange(0, 30).Draw(t, "n") {
			parent := s[rapid.IntRange(0, len(s)-1).Draw(t, "parent")]
			s = append(s, Proc{PID: int32(20 + i), PPID: parent.PID, Born: int64(200 + i)})
		}
		want := oracle(s)
		tr := New(root)
		tr.Capture(s)
		other := Snapshot(rapid.Permutation(s).Draw(t, "order"))
		got := pids(tr.Capture(other))
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Fatalf("living %v, want %v", got, want)
		}
		cut := other[:rapid.IntRange(0, len(other)).Draw(t, "cut")]
		for _, p := range tr.Capture(cut) {
			if !slices.Contains(cut, p) || !slices.Contains(want, p.PID) {
				t.Fatalf("%v is not there, or not ours", p)
			}
		}
	})
}

// oracle climbs from every process to the root, one by one.
func oracle(s Snapshot) []int32 {
	parent := map[int32]int32{}
	for _, p := range s {
		parent[p.PID] = p.PPID
	}
	var out []int32
	for _, p := range s {
		for at := p.PID; ; at = parent[at] {
			if at == root.PID {
				out = append(out, p.PID)
			}
			if at == root.PID || at == 0 {
				break
			}
		}
	}
	slices.Sort(out)
	return out
}

// many is a table of n processes of which half descend from the root.
func many(n int) Snapshot {
	s := Snapshot{{PID: 1, Born: 1}, root}
	rng := rand.New(rand.NewPCG(1, 2))
	ours := []int32{root.PID}
	for i := range n - 2 {
		p := Proc{PID: int32(100 + i), PPID: 1, Born: int64(1000 + i)}
		if i%2 == 0 {
			p.PPID = ours[rng.IntN(len(ours))]
			ours = append(ours, p.PID)
		}
		s = append(s, p)
	}
	return s
}

func TestNoAllocationsInSteadyState(t *testing.T) {
	s := many(500)
	tr := New(root)
	if n := len(tr.Capture(s)); n != 250 {
		t.Fatalf("%d descendants in the table, want 250", n)
	}
	if allocs := testing.AllocsPerRun(100, func() { tr.Capture(s) }); allocs != 0 {
		t.Errorf("%v allocations per capture", allocs)
	}
}

func BenchmarkCapture500(b *testing.B) {
	s := many(500)
	tr := New(root)
	tr.Capture(s)
	b.ReportAllocs()
	for b.Loop() {
		tr.Capture(s)
	}
}
