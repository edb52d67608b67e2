package cgroup

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// walkWait bounds the fallback; a process that cannot die (uninterruptible sleep)
// must not make the helper hang.
const walkWait = 2 * time.Second

// Kill sends SIGKILL to everything in the cgroup. It does not wait for the end.
// cgroup.kill (Linux 5.14) is atomic against forks; without it every process that is
// listed gets the signal until none is.
func (g *Group) Kill() error {
	err := g.dir.write("cgroup.kill", "1")
	if errors.Is(err, unix.ENOENT) {
		return g.killListed()
	}
	if err != nil {
		return fmt.Errorf("cannot kill what is in the cgroup: %w", err)
	}
	return nil
}

// killListed freezes the cgroup, so that a fork bomb cannot outrun the walk (the
// freezer lets SIGKILL through), and kills what it lists, here and below.
func (g *Group) killListed() error {
	g.dir.write("cgroup.freeze", "1") // best effort: Linux 5.2, and not needed
	deadline := time.Now().Add(walkWait)
	for {
		left, err := killBelow(g.dir, 0)
		if err != nil || left == 0 {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("cannot kill what is in the cgroup: %d processes are left after %v", left, walkWait)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// killBelow makes one pass and returns how many processes it met.
func killBelow(d dir, depth int) (int, error) {
	procs, err := d.fields("cgroup.procs")
	if err != nil {
		return 0, fmt.Errorf("cannot list what is in the cgroup: %w", err)
	}
	for some := range slices.Chunk(procs, batch) {
		killMembers(d, some)
	}
	total := len(procs)
	names, err := d.children()
	if err != nil || depth >= maxDepth {
		return total, err
	}
	for _, n := range names {
		c, err := d.child(n)
		if err != nil {
			continue // gone meanwhile
		}
		n, err := killBelow(c, depth+1)
		c.f.Close()
		if total += n; err != nil {
			return total, err
		}
	}
	return total, nil
}

// batch is how many processes the list is read again for: for each one would take the
// square of what a fork bomb makes.
const batch = 64

// killMembers kills those of the listed that still are in the cgroup. The pidfds come
// first: a number that is listed after its pidfd was opened cannot have been reused by
// another process without the signal failing.
func killMembers(d dir, listed []string) {
	f, err := d.open("cgroup.procs", unix.O_RDONLY) // before the pidfds take all descriptors
	if err != nil {
		return
	}
	defer f.Close()
	held := make(map[string]int, len(listed))
	for _, text := range listed {
		pid, err := strconv.Atoi(text)
		if err != nil || pid <= 0 { // 0: of a pid namespace that is not ours
			continue
		}
		if fd, err := unix.PidfdOpen(pid, 0); err == nil {
			held[text] = fd
			defer unix.Close(fd)
		}
	}
	now, err := readAll(f)
	if err != nil {
		return
	}
	for text := range strings.FieldsSeq(now) {
		if fd, ok := held[text]; ok {
			unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
		}
	}
}
