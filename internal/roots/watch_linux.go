package roots

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"sandboxd/internal/ready"
)

// Loss is a place of the view that is no longer what was planned.
type Loss struct {
	Path string
	How  string // what the host did to it, "was replaced on the host during the run"
}

// replaced is the cause that can be seen of a mount that is gone.
const replaced = "was replaced on the host during the run"

// Judge knows which mounts of the jail were planned. It is called from the watch's
// goroutine, and by Stop.
type Judge interface {
	// Expected says of a mount that stands when the watch begins whether it was
	// planned; there are n at its point.
	Expected(m Mount, n int) bool
	// Own says of a mount at a watched point whether the jail itself made it, and then
	// whether it stays read-only whatever the host does.
	Own(m Mount, n int) (own, readOnly bool)
	// Lost says what a mount shows that was not planned and is to be hidden.
	Lost(m Mount) []Loss
	// Bare says of a point that has lost its mount that nothing is there to be seen yet.
	Bare(point string) bool
	// Came gives what is there now and was not, and is to be hidden.
	Came() []Loss
}

// Watch looks after the mount points of one jail while it runs. When the host
// replaces what is under a mount point by rename, or removes it, the kernel takes
// the mount away without a word to anybody else.
type Watch struct {
	table int // mountinfo of the jail's init: holds its mount namespace
	wake  *ready.Waiter
	done  chan struct{}
	cost  time.Duration // of the last reading, of a processor
	told  func([]Loss)
	judge Judge
	plan  record

	over atomic.Bool

	mu   sync.Mutex
	lost map[string]string
}

// OpenMounts opens the mount table of the namespace that initPID lives in, for
// StartWatch; that process must not have been reaped. The descriptor keeps the
// namespace's mounts in being. Plain, close-on-exec, the caller's to close.
func OpenMounts(initPID int) (int, error) {
	path := fmt.Sprintf("/proc/%d/mountinfo", initPID)
	table, err := retry(func() (int, error) { return unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0) })
	if err != nil {
		return -1, fmt.Errorf("cannot watch the jail's mounts: %w", err)
	}
	return table, nil
}

// StartWatch watches the given mount points, paths as the jail sees them, of a mount
// table that OpenMounts gave; it takes the descriptor over, and closes it if it fails.
// Told is called from another goroutine with the points that were found lost,
// each once; a point that is not mounted even now is lost at once. A rename that
// carries a mount away does not wake the watch, so it also looks from time to time.
//
// Judge is asked about mounts that the host made meanwhile and that propagated into
// the jail (mount_namespaces(7): bubblewrap's mounts are slaves of the host's). The
// command runs already, so some may be there before the watch. It may be nil.
func StartWatch(table int, points []string, judge Judge, told func(lost []Loss)) (*Watch, error) {
	// proc_pid_mounts(5): a change shows as EPOLLPRI, to whoever polls first, and that is
	// the runtime's poller. EPOLLIN is always there, and edge-triggered once per change.
	wake, err := ready.New(table, unix.EPOLLIN|unix.EPOLLPRI|unix.EPOLLET)
	if err != nil {
		unix.Close(table)
		return nil, fmt.Errorf("cannot watch the jail's mounts: %w", err)
	}
	w := &Watch{table: table, wake: wake, done: make(chan struct{}), told: told, judge: judge, lost: map[string]string{}}
	_ = wake.Within(minPause)
	_ = wake.Wait() // that there was one at the beginning
	mounts, err := w.read()
	if err != nil {
		wake.Close()
		unix.Close(table)
		return nil, err
	}
	w.plan = newRecord(mounts, points, judge)
	// What is not as planned even now is told by run, as anything later is.
	go w.run(len(w.differs(mounts)) > 0)
	return w, nil
}

// Stop ends the watch, looks a last time, and gives every point that was lost,
// sorted. It may be called after init has ended. Close follows it.
func (w *Watch) Stop() ([]Loss, error) {
	w.over.Store(true)
	w.wake.Interrupt()
	<-w.done
	_, err := w.check()
	w.mu.Lock()
	defer w.mu.Unlock()
	return losses(w.lost), err
}

// Close lets the jail's mounts go, which the watch keeps in being: call it before
// placeholders are removed. If init has ended it is what takes them down, and waits in
// the kernel until nobody can be on them, some 0.3 ms: nothing should wait for it.
func (w *Watch) Close() { unix.Close(w.table) }

func losses(lost map[string]string) []Loss {
	out := make([]Loss, 0, len(lost))
	for path, how := range lost {
		out = append(out, Loss{path, how})
	}
	slices.SortFunc(out, func(a, b Loss) int { return strings.Compare(a.Path, b.Path) })
	return out
}

func (w *Watch) run(look bool) {
	defer close(w.done)
	defer w.wake.Close()
	for first := !look; ; first = false {
		if !first {
			w.tell()
		}
		_ = w.wake.Within(w.pause())
		if w.over.Load() { // Within may have undone the interruption
			return // Stop looks a last time
		}
		if err := w.wake.Wait(); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) || w.over.Load() {
			return
		}
	}
}

// tell looks, and says what it found.
func (w *Watch) tell() {
	lost, err := w.check()
	if err == nil && len(lost) > 0 && w.told != nil {
		w.told(lost)
	}
}

// What has no event, as a rename that carries a mount away, and what comes where no mount
// is, is seen by a look alone. To read a table of 30 mounts takes some 50 µs.
const (
	minPause = 50 * time.Millisecond
	maxPause = time.Second
	share    = 200 // of a processor at most one part goes into reading, but for maxPause
)

// pause is how long the kernel may stay silent before the next look. How long the last
// look took is no measure: a file system may have held the judge up, or the command
// itself the processors.
func (w *Watch) pause() time.Duration { return min(max(minPause, share*w.cost), maxPause) }

// check compares the table and gives the points that are newly lost.
func (w *Watch) check() ([]Loss, error) {
	gone, err := w.missing()
	if err == nil && len(gone) > 0 {
		// A table is read in pieces, and older kernels skip a line when one before it
		// goes meanwhile. A command is stopped for this, so look twice.
		var again map[string]string
		if again, err = w.missing(); err == nil {
			for point := range gone {
				if _, still := again[point]; !still {
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
	for point, how := range gone {
		w.lost[point] = how
	}
	return losses(gone), nil
}

// missing gives the points, not yet known as lost, at which the jail's own mount is not
// any more or that an arrived mount took away.
func (w *Watch) missing() (map[string]string, error) {
	mounts, err := w.read()
	if err != nil {
		return nil, err
	}
	return w.differs(mounts), nil
}

func (w *Watch) differs(mounts []Mount) map[string]string {
	w.mu.Lock()
	defer w.mu.Unlock()
	gone := map[string]string{}
	already := func(point string) bool { return w.lost[point] != "" }
	lose := func(l Loss) {
		if !already(l.Path) {
			gone[l.Path] = l.How
		}
	}
	w.plan.lost(mounts, lose, already)
	if w.judge != nil {
		for _, l := range w.judge.Came() {
			lose(l)
		}
	}
	return gone
}

// read gives the jail's mounts.
func (w *Watch) read() ([]Mount, error) {
	runtime.LockOSThread() // whose time is measured
	defer runtime.UnlockOSThread()
	from := processorTime()
	data, err := readFrom(w.table)
	if err != nil {
		return nil, fmt.Errorf("cannot read the jail's mounts: %w", err)
	}
	mounts, err := ParseMountinfo(data)
	w.cost = processorTime() - from
	return mounts, err
}

// processorTime is what this thread has had of a processor.
func processorTime() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}

// readFrom reads a whole file of /proc from its start.
func readFrom(fd int) ([]byte, error) {
	out := make([]byte, 0, 8<<10)
	for {
		out = slices.Grow(out, 4096) // a page is what one read gives
		n, err := unix.Pread(fd, out[len(out):cap(out)], int64(len(out)))
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return nil, err
		case n == 0:
			return out, nil
		}
		out = out[:len(out)+n]
	}
}
