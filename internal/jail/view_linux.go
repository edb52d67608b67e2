package jail

import (
	"fmt"
	"sync"

	"golang.org/x/sys/unix"

	"sandboxd/internal/bwrap"
	"sandboxd/internal/host"
	"sandboxd/internal/roots"
	"sandboxd/internal/stage2/spec"
)

// mountTable is the helper's own mounts, read again only when the kernel says that
// they changed: a look costs 1 µs, reading them up to 100.
type mountTable struct {
	mu      sync.Mutex
	fd      int  // a plain descriptor: the runtime's own poller would take the events away
	stale   bool // the kernel said that it changed, once, and reading it failed
	mounts  []roots.Mount
	devices []string // each once
	version uint64   // how often the table was read
}

func openMountTable() (*mountTable, error) {
	fd, err := unix.Open("/proc/self/mountinfo", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("cannot open the mount table: %w", err)
	}
	t := &mountTable{fd: fd}
	if err := t.read(); err != nil {
		unix.Close(fd)
		return nil, err
	}
	return t, nil
}

// changed says whether the table is another one than at the last call or the opening
// (proc_pid_mounts(5): POLLPRI and POLLERR).
func (t *mountTable) changed() bool {
	fds := []unix.PollFd{{Fd: int32(t.fd), Events: unix.POLLPRI}}
	n, err := unix.Poll(fds, 0)
	return err != nil || n > 0
}

func (t *mountTable) read() error {
	t.version++
	data := make([]byte, 0, 16<<10)
	for {
		if cap(data)-len(data) < 4096 {
			data = append(make([]byte, 0, 2*cap(data)), data...)
		}
		n, err := unix.Pread(t.fd, data[len(data):cap(data)], int64(len(data)))
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return fmt.Errorf("cannot read the mount table: %w", err)
		}
		if n == 0 {
			break
		}
		data = data[:len(data)+n]
	}
	mounts, err := roots.ParseMountinfo(data)
	if err != nil {
		return err
	}
	t.mounts, t.devices = mounts, nil
	seen := map[string]bool{}
	for _, m := range mounts {
		if !seen[m.Dev] {
			seen[m.Dev] = true
			t.devices = append(t.devices, m.Dev)
		}
	}
	return nil
}

// now gives the mounts as they are, and every device among them once.
func (t *mountTable) now() (mounts []roots.Mount, devices []string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stale = t.changed() || t.stale; t.stale {
		if err := t.read(); err != nil {
			return nil, nil, err
		}
		t.stale = false
	}
	return t.mounts, t.devices, nil
}

// current is the version of the table as it is.
func (t *mountTable) current() uint64 {
	_, _, _ = t.now() // an error is met again by whoever needs the mounts
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.version
}

// view is what stage 2 compares the jail's mount table with: what bubblewrap was told
// to mount, and which of the host's mounts a recursive bind brings along.
func (t *mountTable) view(told []bwrap.Mount) (spec.View, error) {
	now, devices, err := t.now()
	if err != nil {
		return spec.View{}, err
	}
	v := spec.View{Devices: devices}
	trees := map[string]int{}
	for _, m := range told {
		holds := spec.HoldsFile
		switch {
		case m.Fresh:
			holds = spec.HoldsFresh
		case m.Tree:
			holds = spec.HoldsTree
			trees[m.Path]++
		}
		v.Mounts = append(v.Mounts, spec.Mount{Path: m.Path, Holds: holds, ReadOnly: m.ReadOnly, Optional: m.Optional})
	}
	for _, m := range now {
		for dir := m.Point; dir != "/"; {
			dir = host.Parent(dir)
			for range trees[dir] { // each bind brings a copy, and the table shows hidden ones too
				v.Host = append(v.Host, spec.HostMount{Path: m.Point, Device: m.Dev})
			}
		}
	}
	return v, nil
}
