package leash

import (
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// The role's descriptors.
const (
	lifeFD = 3
	heldFD = 4
)

// How long what was left is looked for, and how often.
const (
	endBound    = 30 * time.Second
	endLook     = time.Millisecond // at first: what does not die at once may take long
	endLookLast = 100 * time.Millisecond
	forEver     = -1
)

// Main is the role: it waits for the helper's end, ends what still holds the pipe, and
// returns the exit status.
func Main() int {
	pipe, ok := pipeOf(heldFD)
	if !ok || unix.PidfdSendSignal(lifeFD, 0, nil, 0) == unix.EBADF {
		fmt.Fprintln(os.Stderr, "sandboxd: "+Role+" is for sandboxd itself")
		return 2
	}
	signal.Ignore(unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM)
	if !happens(lifeFD, unix.POLLIN, forEver) {
		return 1 // whoever is told that a helper has ended which has not would kill it
	}
	look := endLook
	for end := time.Now().Add(endBound); !happens(heldFD, unix.POLLHUP, 0); time.Sleep(look) {
		if time.Now().After(end) {
			return 1
		}
		endAll(pipe)
		look = min(2*look, endLookLast)
	}
	return 0
}

// pipeOf names the pipe that a descriptor leads to, as /proc does.
func pipeOf(fd int) (string, bool) {
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFIFO {
		return "", false
	}
	return fmt.Sprintf("pipe:[%d]", st.Ino), true
}

// happens says whether an event is there, or waits for it: POLLIN of a pidfd is the
// process's end, POLLHUP of a pipe that nobody holds its other end (poll(2)).
func happens(fd int32, event int16, wait int) bool {
	for {
		p := []unix.PollFd{{Fd: fd, Events: event}}
		_, err := unix.Poll(p, wait)
		if err == unix.EINTR {
			continue
		}
		return err == nil && p[0].Revents&event != 0
	}
}

// endAll kills whoever holds the pipe. A pidfd keeps the number from being another's by
// the time of the signal.
func endAll(pipe string) {
	procs, err := os.ReadDir("/proc")
	if err != nil {
		return
	}
	for _, e := range procs {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() || !holds(e.Name(), pipe) {
			continue
		}
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			continue
		}
		if named(fd, e.Name()) && holds(e.Name(), pipe) {
			_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
		}
		unix.Close(fd)
	}
}

// named says whether /proc has that number for a process. One that was mounted for
// another pid namespace, as unshare -p leaves it, has other numbers than system calls.
func named(pidfd int, pid string) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/self/fdinfo/%d", pidfd))
	return err == nil && strings.Contains(string(b), "\nPid:\t"+pid+"\n")
}

func holds(pid, pipe string) bool {
	dir := "/proc/" + pid + "/fd"
	fds, err := os.ReadDir(dir)
	if err != nil {
		return false // another user's
	}
	for _, fd := range fds {
		if at, err := os.Readlink(dir + "/" + fd.Name()); err == nil && at == pipe {
			return true
		}
	}
	return false
}
