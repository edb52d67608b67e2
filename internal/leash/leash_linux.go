package leash

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// Role is the argument that makes this program that process. Nobody types it.
const Role = "--leash"

// Leash is the helper's side.
type Leash struct {
	cmd  *exec.Cmd
	held *os.File // what is inherited
}

// Start starts the process; there is none where the kernel, or a filter, has no pidfds: it
// could end nobody. The helper's end is a pidfd's, and no pipe's, whose other end would
// also be in whatever hangs between fork and exec. Call it on a thread that lives as long
// as the helper: its end makes the process go on, should somebody have stopped it.
func Start() (*Leash, error) {
	fd, err := unix.PidfdOpen(os.Getpid(), 0)
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) {
		return nil, nil
	}
	if err != nil {
		return nil, failed(err)
	}
	life := os.NewFile(uintptr(fd), "helper")
	defer life.Close()
	ours, held, err := os.Pipe()
	if err != nil {
		return nil, failed(err)
	}
	defer ours.Close()
	cmd := exec.Command("/proc/self/exe", Role)
	cmd.Args[0], cmd.Env, cmd.Dir = "sandboxd", []string{}, "/"
	cmd.ExtraFiles = []*os.File{life, ours}
	// What a terminal sends to the helper's group is not meant for it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGCONT}
	if err := cmd.Start(); err != nil {
		held.Close()
		return nil, failed(err)
	}
	return &Leash{cmd, held}, nil
}

func failed(err error) error {
	if errors.Is(err, unix.EBADF) { // dup3(2): the number is beyond RLIMIT_NOFILE
		err = unix.EMFILE
	}
	return fmt.Errorf("cannot start the process that cleans up after a killed helper: %w; raise the limit of processes or descriptors", err)
}

// File is what a scaffolding inherits, as any descriptor that it does not know.
func (l *Leash) File() *os.File { return l.held }

// Pid is the process.
func (l *Leash) Pid() int { return l.cmd.Process.Pid }

// End is that of a helper which has cleaned up by itself: nothing is left to do.
func (l *Leash) End() {
	_ = l.cmd.Process.Kill()
	_ = l.cmd.Wait()
	l.held.Close()
}
