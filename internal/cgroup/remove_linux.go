package cgroup

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// maxDepth bounds the walk through cgroups that an execution made below its own.
const maxDepth = 32

// populated reports whether a process lives in the cgroup or below it.
func populated(events string) bool {
	n, ok := counter(events, "populated")
	return !ok || n != 0
}

// waitEmpty waits until nothing lives in the cgroup. cgroup.events signals a change
// as POLLPRI (cgroup-v2.rst, "[Un]populated Notification").
func waitEmpty(d dir, deadline time.Time) error {
	f, err := d.open("cgroup.events", unix.O_RDONLY)
	if err != nil {
		return err
	}
	defer f.Close()
	fd := int(f.Fd())
	var buf [256]byte
	for {
		n, err := retry(func() (int, error) { return unix.Pread(fd, buf[:], 0) })
		if err != nil {
			return &os.PathError{Op: "read", Path: f.Name(), Err: err}
		}
		if !populated(string(buf[:n])) {
			return nil
		}
		left := time.Until(deadline)
		if left <= 0 {
			return os.ErrDeadlineExceeded
		}
		// The read above comes first, so that no change is missed in between; the
		// upper bound is for kernels that lose a notification.
		wait := min(left, 100*time.Millisecond).Milliseconds() + 1
		unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLPRI}}, int(wait))
	}
}

// removeTree removes the cgroup name below parent, deepest first and by rmdir alone:
// a cgroup in which something lives stays.
func removeTree(parent dir, name string, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("cannot remove cgroup %s/%s: nested too deeply", parent.path, name)
	}
	d, err := parent.child(name)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err == nil {
		names, err := d.children()
		for _, n := range names {
			err = errors.Join(err, removeTree(d, n, depth+1))
		}
		d.f.Close()
		if err != nil {
			return err
		}
	}
	err = unix.Unlinkat(parent.fd(), name, unix.AT_REMOVEDIR)
	if err != nil && !errors.Is(err, unix.ENOENT) {
		return &os.PathError{Op: "rmdir", Path: parent.path + "/" + name, Err: err}
	}
	return nil
}
