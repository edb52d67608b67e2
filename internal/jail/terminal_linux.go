package jail

import (
	"os"

	"golang.org/x/sys/unix"

	"sandboxd/internal/procfs"
)

// leaveTerminal gives the helper's controlling terminal up, and says whether it has none.
// Scaffoldings then need no session of their own to be kept from it, and are better
// without: each session is a group of the scheduler's, which on a busy machine gets no
// processor at first (sched(7), autogroup; starting a jail took twice as long there). A
// terminal's signals go to its foreground group all the same.
func leaveTerminal() bool {
	has, err := hasTerminal()
	if err != nil || !has {
		return err == nil
	}
	if sid, err := unix.Getsid(0); err != nil || sid == os.Getpid() {
		return false // the leader would take it from the whole session (ioctl_tty(2))
	}
	fd, err := unix.Open("/dev/tty", unix.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	if err := unix.IoctlSetInt(fd, unix.TIOCNOTTY, 0); err != nil {
		return false
	}
	has, err = hasTerminal()
	return err == nil && !has
}

func hasTerminal() (bool, error) {
	b, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return false, err
	}
	st, err := procfs.ParseStat(b)
	return st.Terminal != 0, err
}
