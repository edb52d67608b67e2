package jail

import (
	"bytes"
	"fmt"
	"sync"

	"golang.org/x/sys/unix"

	"sandboxd/internal/bwrap"
	"sandboxd/internal/host"
	"sandboxd/internal/roots"
	"sandboxd/internal/stage2/spec"
)

// mountTable is the helper's own mounts. The kernel tells of most that changes them
// (proc_pid_mounts(5)), but not of a directory above a mount that is renamed, which moves
// the mount, nor of a file system that becomes read-only: so they are read each time, which
// costs up to 100 µs, and compared.
type mountTable struct {
	mu      sync.Mutex
	fd      int    // a plain descriptor: the runtime's own poller would take the events away
	text    []byte // as it was read last, empty where that failed
	spare   []byte // for the next reading
	mounts  []roots.Mount
	devices []string // each once
	version uint64   // how often it was another one
}

func openMountTable() (*mountTable, error) {
	fd, err := unix.Open("/proc/self/mountinfo", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("cannot open the mount table: %w", err)
	}
	t := &mountTable{fd: fd}
	if err := t.look(); err != nil {
		unix.Close(fd)
		return nil, err
	}
	return t, nil
}

// told says whether the kernel told of a change since the last call or the opening: what
// came and went meanwhile shows in no reading.
func (t *mountTable) told() bool {
	fds := []unix.PollFd{{Fd: int32(t.fd), Events: unix.POLLPRI}}
	n, err := unix.Poll(fds, 0)
	return err != nil || n > 0
}

// look takes the table as it is. What cannot be read is not what it was.
func (t *mountTable) look() error {
	told := t.told()
	data, err := t.read(t.spare[:0])
	if err == nil && !told && len(t.text) > 0 && bytes.Equal(data, t.text) {
		t.spare = data
		return nil
	}
	t.version++
	t.text, t.spare = data, t.text
	if err == nil {
		err = t.parse()
	}
	if err != nil {
		t.text = nil
	}
	return err
}

func (t *mountTable) read(data []byte) ([]byte, error) {
	for {
		if cap(data)-len(data) < 4096 {
			data = append(make([]byte, 0, max(16<<10, 2*cap(data))), data...)
		}
		n, err := unix.Pread(t.fd, data[len(data):cap(data)], int64(len(data)))
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("cannot read the mount table: %w", err)
		}
		if n == 0 {
			return data, nil
		}
		data = data[:len(data)+n]
	}
}

func (t *mountTable) parse() error {
	mounts, err := roots.ParseMountinfo(t.text)
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
	if err := t.look(); err != nil {
		return nil, nil, err
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
