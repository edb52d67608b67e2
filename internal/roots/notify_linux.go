package roots

import (
	"strconv"

	"golang.org/x/sys/unix"
)

// notice hears of what happens in some directories, see inotify(7): of names that come,
// modes that change, files that were written. It hears nothing of what another machine
// does to a file system that both have mounted.
type notice struct {
	fd int // 0: there is none, or it does not hear everything
}

// interesting is what can close something to others, or bring it.
const interesting = unix.IN_ATTRIB | unix.IN_CREATE | unix.IN_MOVED_TO | unix.IN_CLOSE_WRITE |
	unix.IN_DELETE_SELF | unix.IN_MOVE_SELF | unix.IN_ONLYDIR

// begin forgets everything. A user has 128 of these by default: without one the answer
// is looked for instead.
func (n *notice) begin() {
	n.end()
	if fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK); err == nil {
		n.fd = fd
	}
}

func (n *notice) end() {
	if n.fd > 0 {
		unix.Close(n.fd)
	}
	n.fd = 0
}

// add has the open directory watched from now on.
func (n *notice) add(dir int) {
	if n.fd == 0 {
		return
	}
	if _, err := unix.InotifyAddWatch(n.fd, "/proc/self/fd/"+strconv.Itoa(dir), interesting); err != nil {
		n.end()
	}
}

// heard says whether something happened. Nothing is read off for the next question.
func (n *notice) heard() bool {
	waiting, err := unix.IoctlGetInt(n.fd, unix.TIOCINQ)
	return err != nil || waiting > 0
}
