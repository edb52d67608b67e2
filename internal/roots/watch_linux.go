package roots

import (
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sys/unix"
)

// Watch looks after the mount points of one jail while it runs. When the host
// replaces what is under a mount point by rename, or removes it, the kernel takes
// the mount away without a word to anybody else.
type Watch struct {
	// Plain descriptors: the runtime's own poller would take the events away.
	table int // mountinfo of the jail's init: holds its mount namespace
	stop  int // write end of a pipe
	done  chan struct{}
	told  func([]string)

	mu   sync.Mutex
	want map[string]int // mount points, with how many mounts each had
	lost map[string]bool
}

// StartWatch watches the given mount points, paths as the jail sees them, of the
// mount namespace that initPID lives in; that process must not have been reaped.
// Told is called from another goroutine with the points that were found lost,
// each once; a point that is not mounted even now is lost at once. A rename of a
// parent does not wake the watch: Stop looks again.
func StartWatch(initPID int, points []string, told func(lost []string)) (*Watch, error) {
	path := fmt.Sprintf("/proc/%d/mountinfo", initPID)
	table, err := retry(func() (int, error) { return unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0) })
	if err != nil {
		return nil, fmt.Errorf("cannot watch the jail's mounts: %w", err)
	}
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		unix.Close(table)
		return nil, fmt.Errorf("cannot watch the jail's mounts: %w", err)
	}
	w := &Watch{table: table, stop: pipe[1], done: make(chan struct{}), told: told, want: map[string]int{}, lost: map[string]bool{}}
	now, err := w.read()
	if err != nil {
		unix.Close(table)
		unix.Close(pipe[0])
		unix.Close(pipe[1])
		return nil, err
	}
	for _, point := range points {
		w.want[point] = max(now[point], 1)
	}
	go w.run(pipe[0])
	return w, nil
}

// Stop ends the watch, looks a last time, and gives every point that was lost,
// sorted. It may be called after init has ended, and must be called before
// placeholders are removed: the watch keeps the jail's mounts in being.
func (w *Watch) Stop() ([]string, error) {
	_, _ = unix.Write(w.stop, []byte{0})
	<-w.done
	unix.Close(w.stop)
	_, err := w.check()
	unix.Close(w.table)
	w.mu.Lock()
	defer w.mu.Unlock()
	return keys(w.lost), err
}

func (w *Watch) run(wake int) {
	defer close(w.done)
	defer unix.Close(wake)
	// proc_pid_mounts(5): a change of the table shows as POLLPRI and POLLERR.
	fds := []unix.PollFd{{Fd: int32(w.table), Events: unix.POLLPRI}, {Fd: int32(wake), Events: unix.POLLIN}}
	for {
		if lost, err := w.check(); err == nil && len(lost) > 0 && w.told != nil {
			w.told(lost)
		}
		fds[0].Revents, fds[1].Revents = 0, 0
		_, err := unix.Poll(fds, -1)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || fds[1].Revents != 0 {
			return // Stop looks a last time
		}
	}
}

// check compares the table and gives the points that are newly lost.
func (w *Watch) check() ([]string, error) {
	gone, err := w.missing()
	if err == nil && len(gone) > 0 {
		// A table is read in pieces, and older kernels skip a line when one before it
		// goes meanwhile. A command is stopped for this, so look twice.
		var again map[string]bool
		if again, err = w.missing(); err == nil {
			for point := range gone {
				if !again[point] {
					delete(gone, point)
				}
			}
		}
	}
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for point := range gone {
		w.lost[point] = true
	}
	return keys(gone), nil
}

// missing gives the points, not yet known as lost, that have fewer mounts.
func (w *Watch) missing() (map[string]bool, error) {
	now, err := w.read()
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	gone := map[string]bool{}
	for point, n := range w.want {
		if now[point] < n && !w.lost[point] {
			gone[point] = true
		}
	}
	return gone, nil
}

// read counts the mounts at each point.
func (w *Watch) read() (map[string]int, error) {
	data, err := readFrom(w.table)
	if err != nil {
		return nil, fmt.Errorf("cannot read the jail's mounts: %w", err)
	}
	mounts, err := ParseMountinfo(data)
	if err != nil {
		return nil, err
	}
	count := make(map[string]int, len(mounts))
	for _, m := range mounts {
		count[m.Point]++
	}
	return count, nil
}

// readFrom reads a whole file of /proc from its start.
func readFrom(fd int) ([]byte, error) {
	var out []byte
	buf := make([]byte, 1<<16)
	for {
		n, err := unix.Pread(fd, buf, int64(len(out)))
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return nil, err
		case n == 0:
			return out, nil
		}
		out = append(out, buf[:n]...)
	}
}
