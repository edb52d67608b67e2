package probe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sandboxd/internal/procfs"
)

// maxSaid bounds what is read of a program's output.
const maxSaid = 1 << 16

// sweepBound is how long what a trial left may take to die.
const sweepBound = 3 * time.Second

type outcome struct {
	Attempt
	stdout string
}

// run starts bubblewrap with an empty environment, waits for it until ctx ends, and
// leaves no process of it behind. Image, where given, becomes descriptor 3; a memfd
// for --info-fd is descriptor 4. It is for a process that has no other children,
// is a subreaper, and calls from the thread that lives longest: --die-with-parent
// follows the thread.
func run(ctx context.Context, path string, args []string, image *os.File) outcome {
	var files [3]*os.File // memfds: nothing to pump, and no hung writer to wait for
	for i, name := range []string{"stdout", "stderr", "info"} {
		fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC)
		if err != nil {
			return outcome{Attempt: Attempt{StartErr: fmt.Sprintf("cannot make a memory file: %v", err)}}
		}
		files[i] = os.NewFile(uintptr(fd), name)
		defer files[i].Close()
	}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Args[0], cmd.Env, cmd.Stdout, cmd.Stderr = "bwrap", []string{}, files[0], files[1]
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if image != nil {
		cmd.ExtraFiles = []*os.File{image, files[2]}
	}
	if err := cmd.Start(); err != nil {
		return outcome{Attempt: Attempt{StartErr: err.Error(), TimedOut: errors.Is(err, context.DeadlineExceeded)}}
	}
	_ = cmd.Wait() // how it ended is in ProcessState
	out := outcome{stdout: read(files[0])}
	out.Stderr, out.Exit = read(files[1]), exitCode(cmd.ProcessState)
	out.TimedOut = ctx.Err() != nil && out.Exit == 128+int(unix.SIGKILL)
	if !sweep(time.Now().Add(sweepBound)) {
		out.TimedOut = true
	}
	return out
}

// sweep kills and reaps what descends from this process until nothing is left, or
// the end has come. Whoever is orphaned falls to this process, a subreaper, and is
// met in the next round. Unreaped children keep their numbers: none is hit wrongly.
func sweep(end time.Time) bool {
	for {
		pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil)
		switch {
		case err == unix.ECHILD:
			return true
		case err == unix.EINTR, err == nil && pid > 0:
			continue
		}
		for _, child := range children() {
			_ = unix.Kill(child, unix.SIGKILL)
		}
		if time.Now().After(end) {
			return false
		}
		time.Sleep(time.Millisecond)
	}
}

// children lists this process's own, by the parent that every process names: it
// needs no file that a kernel may be built without.
func children() []int {
	dirs, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var out []int
	for _, d := range dirs {
		if pid, err := strconv.Atoi(d.Name()); err == nil && parentOf(pid) == os.Getpid() {
			out = append(out, pid)
		}
	}
	return out
}

func parentOf(pid int) int {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return -1
	}
	row, err := procfs.ParseStat(b)
	if err != nil {
		return -1
	}
	return row.PPID
}

func read(f *os.File) string {
	data, err := io.ReadAll(io.NewSectionReader(f, 0, maxSaid))
	if err != nil {
		return ""
	}
	return string(data)
}

func exitCode(s *os.ProcessState) int {
	if s == nil {
		return -1
	}
	if ws, ok := s.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return s.ExitCode()
}
