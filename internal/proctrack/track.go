package proctrack

import "slices"

// Proc is one row of a process table.
type Proc struct {
	PID, PPID int32
	PGID      int32 // its process group
	Born      int64 // time of birth, in a unit of the system's; tells a reused number
	Zombie    bool
}

// Snapshot is a process table at one time, in the system's order.
type Snapshot []Proc

// none is the end of a list of indices into a snapshot.
const none = int32(-1)

// Tracker remembers what descends from one process. It is not safe for concurrent
// use; Follower is. Captures reuse its buffers, so in steady state they allocate
// nothing.
type Tracker struct {
	root   Proc
	known  map[int32]int64 // pid -> time of birth of each descendant, the root included
	byPID  map[int32]int32 // pid -> index into the snapshot
	first  []int32         // index of the first child of the process at an index
	next   []int32         // index of the next sibling of the process at an index
	todo   []int32         // frontier of the traversal
	met    []bool          // reached in this capture
	living []Proc
}

// New begins with the command itself.
func New(root Proc) *Tracker {
	return &Tracker{root: root, known: map[int32]int64{root.PID: root.Born}, byPID: map[int32]int32{}}
}

// Capture takes one sample: what was known and still lives, and all that descends
// from it now. The result is the living ones, parents before their children and
// siblings in the snapshot's order; it is valid until the next capture.
func (t *Tracker) Capture(s Snapshot) []Proc {
	t.index(s)
	t.todo, t.living = t.todo[:0], t.living[:0]
	// In the snapshot's order, the root first where it lives: a map's order would
	// change from capture to capture.
	if i, ok := t.byPID[t.root.PID]; ok && s[i].Born == t.root.Born {
		t.reach(i)
		t.walk(s)
	}
	for i, p := range s {
		if born, ok := t.known[p.PID]; ok && born == p.Born && !t.met[i] {
			t.reach(int32(i)) // was re-parented
			t.walk(s)
		}
	}
	t.forget(s)
	return t.living
}

// index links each process to its children. A row whose parent is younger than it
// is not linked: the parent's number was reused while the table was read.
func (t *Tracker) index(s Snapshot) {
	clear(t.byPID)
	t.first, t.next, t.met = grown(t.first, len(s)), grown(t.next, len(s)), grown(t.met, len(s))
	for i, p := range s {
		t.byPID[p.PID] = int32(i)
		t.first[i], t.next[i], t.met[i] = none, none, false
	}
	for i := len(s) - 1; i >= 0; i-- { // backwards, so that the lists are forwards
		parent, ok := t.byPID[s[i].PPID]
		if !ok || parent == int32(i) || s[parent].Born > s[i].Born {
			continue
		}
		t.next[i], t.first[parent] = t.first[parent], int32(i)
	}
}

// grown gives a slice of n elements with what capacity there is.
func grown[E any](s []E, n int) []E { return slices.Grow(s[:0], n)[:n] }

func (t *Tracker) reach(i int32) {
	t.met[i] = true
	t.todo = append(t.todo, i)
}

// walk takes the frontier until it is empty, breadth first.
func (t *Tracker) walk(s Snapshot) {
	for at := 0; at < len(t.todo); at++ {
		i := t.todo[at]
		t.known[s[i].PID] = s[i].Born
		t.living = append(t.living, s[i])
		for kid := t.first[i]; kid != none; kid = t.next[kid] {
			if !t.met[kid] {
				t.reach(kid)
			}
		}
	}
	t.todo = t.todo[:0]
}

// forget drops who has gone, so that a long execution does not grow the memory. The
// root stays: its identity is what the tracker is about.
func (t *Tracker) forget(s Snapshot) {
	for pid, born := range t.known {
		if i, ok := t.byPID[pid]; (!ok || s[i].Born != born) && pid != t.root.PID {
			delete(t.known, pid)
		}
	}
}
