package roots

import (
	"errors"
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// Watch looks after the mount points of one jail while it runs. When the host
// replaces what is under a mount point by rename, or removes it, the kernel takes
// the mount away without a word to anybody else.
type Watch struct {
	table *os.File // mountinfo of the jail's init: holds its mount namespace
	stop  *os.File // write end of a pipe
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
	table, err := os.OpenFile(fmt.Sprintf("/proc/%d/mountinfo", initPID), os.O_RDONLY, 0)
	if err != nil {
		return nil, fmt.Errorf("cannot watch the jail's mounts: %w", err)
	}
	wake, stop, err := os.Pipe()
	if err != nil {
		table.Close()
		return nil, fmt.Errorf("cannot watch the jail's mounts: %w", err)
	}
	w := &Watch{table: table, stop: stop, done: make(chan struct{}), told: told, want: map[string]int{}, lost: map[string]bool{}}
	now, err := w.read()
	if err != nil {
		table.Close()
		wake.Close()
		stop.Close()
		return nil, err
	}
	for _, point := range points {
		w.want[point] = max(now[point], 1)
	}
	go w.run(wake)
	return w, nil
}

// Stop ends the watch, looks a last time, and gives every point that was lost,
// sorted. It may be called after init has ended, and must be called before
// placeholders are removed: the watch keeps the jail's mounts in being.
func (w *Watch) Stop() ([]string, error) {
	w.stop.Close()
	<-w.done
	_, err := w.check()
	w.table.Close()
	w.mu.Lock()
	defer w.mu.Unlock()
	return keys(w.lost), err
}

func (w *Watch) run(wake *os.File) {
	defer close(w.done)
	defer wake.Close()
	// proc_pid_mounts(5): a change of the table shows as POLLPRI and POLLERR.
	fds := []unix.PollFd{{Fd: int32(w.table.Fd()), Events: unix.POLLPRI}, {Fd: int32(wake.Fd()), Events: unix.POLLIN}}
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
	now, err := w.read()
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	fresh := map[string]bool{}
	for point, n := range w.want {
		if now[point] < n && !w.lost[point] {
			w.lost[point] = true
			fresh[point] = true
		}
	}
	return keys(fresh), nil
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
func readFrom(f *os.File) ([]byte, error) {
	var out []byte
	buf := make([]byte, 1<<16)
	for {
		n, err := unix.Pread(int(f.Fd()), buf, int64(len(out)))
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
