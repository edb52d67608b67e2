package stage2

import (
	"strconv"

	"golang.org/x/sys/unix"

	"sandboxd/internal/stage2/spec"
)

// descriptors moves the command's streams into place and marks everything above
// them close-on-exec, fd 4 too: its end of file is how the helper learns that
// execve succeeded. Marked, not closed, because the report still goes out on it.
func (p *process) descriptors() *spec.Failure {
	for fd := 0; fd <= 2; fd++ {
		if err := unix.Dup3(spec.StdinFD+fd, fd, 0); err != nil {
			return failure(spec.StepDescriptors, "cannot put the command's streams in place", err)
		}
	}
	err := unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC)
	if err == unix.ENOSYS || err == unix.EINVAL || err == nil && !marked(spec.ReportFD) { // before 5.9, before 5.11
		err = markEach()
	}
	if err != nil {
		return failure(spec.StepDescriptors, "cannot mark descriptors close-on-exec", err)
	}
	return nil
}

// marked looks whether it was done: fd 4 came open across execve.
func marked(fd int) bool {
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
	return err == nil && flags&unix.FD_CLOEXEC != 0
}

// markEach is for kernels without CLOSE_RANGE_CLOEXEC. They have no Landlock
// either (5.13), so the directory can be read.
func markEach() error {
	dir, err := unix.Open("/proc/self/fd", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	buf := make([]byte, 4096)
	for {
		n, err := unix.Getdents(dir, buf)
		if err != nil || n == 0 {
			return err
		}
		_, _, names := unix.ParseDirent(buf[:n], -1, nil)
		for _, name := range names {
			fd, err := strconv.Atoi(name)
			if err != nil || fd < 3 {
				continue
			}
			if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETFD, unix.FD_CLOEXEC); err != nil {
				return err
			}
		}
	}
}
