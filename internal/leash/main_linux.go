package leash

import (
	"fmt"
	"os"
	"os/signal"
	"strconv"
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
	endBound = 30 * time.Second
	endLook  = time.Millisecond
	forEver  = -1
)

// Main is the role: it waits for the helper's end, ends what still holds the pipe, and
// returns the exit status.
func Main() int {
	pipe, ok := pipeOf(heldFD)
	if _, life := pipeOf(lifeFD); !ok || !life {
		fmt.Fprintln(os.Stderr, "sandboxd: "+Role+" is for sandboxd itself")
		return 2
	}
	signal.Ignore(unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM)
	closed(lifeFD, forEver)
	for end := time.Now().Add(endBound); !closed(heldFD, 0); time.Sleep(endLook) {
		if time.Now().After(end) {
			return 1
		}
		endAll(pipe)
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

// closed says whether a pipe has no writer any more, or waits for that.
func closed(fd int32, wait int) bool {
	for {
		p := []unix.PollFd{{Fd: fd}} // POLLHUP needs no asking for (poll(2))
		n, err := unix.Poll(p, wait)
		if err == unix.EINTR {
			continue
		}
		return err != nil || n > 0
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
		if holds(e.Name(), pipe) {
			_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
		}
		unix.Close(fd)
	}
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
