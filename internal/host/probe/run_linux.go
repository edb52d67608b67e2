package probe

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// maxSaid bounds what is read of a program's output.
const maxSaid = 1 << 16

type outcome struct {
	Attempt
	stdout string
}

// run starts bubblewrap with an empty environment, waits until end at most, and
// leaves no process of it behind. Image, where given, becomes descriptor 3; a memfd
// for --info-fd is descriptor 4.
func run(path string, args []string, image *os.File, end time.Time) outcome {
	var files [3]*os.File // memfds: nothing to pump, and no hung writer to wait for
	for i, name := range []string{"stdout", "stderr", "info"} {
		fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC)
		if err != nil {
			return outcome{Attempt: Attempt{StartErr: fmt.Sprintf("cannot make a memory file: %v", err)}}
		}
		files[i] = os.NewFile(uintptr(fd), name)
		defer files[i].Close()
	}
	cmd := exec.Cmd{Path: path, Args: append([]string{"bwrap"}, args...), Env: []string{}, Stdout: files[0], Stderr: files[1]}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if image != nil {
		cmd.ExtraFiles = []*os.File{image, files[2]}
	}
	// --die-with-parent follows the thread that started it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := cmd.Start(); err != nil {
		return outcome{Attempt: Attempt{StartErr: err.Error()}}
	}
	timedOut, orphans := wait(&cmd, end)
	if pid := initPID(read(files[2])); pid > 0 {
		orphans = append(orphans, pid)
	}
	reap(orphans, time.Now().Add(2*time.Second))
	out := outcome{stdout: read(files[0])}
	out.Stderr, out.TimedOut = read(files[1]), timedOut
	out.Exit = exitCode(cmd.ProcessState)
	return out
}

// wait reaps the supervisor. At the deadline everything is killed; the children
// that fall to this process are returned.
func wait(cmd *exec.Cmd, end time.Time) (timedOut bool, orphans []int) {
	done := make(chan struct{})
	killed := make(chan []int, 1)
	timer := time.NewTimer(time.Until(end))
	defer timer.Stop()
	go func() {
		defer close(killed)
		select {
		case <-done:
		case <-timer.C:
			killed <- kill(cmd.Process)
		}
	}()
	_ = cmd.Wait() // how it ended is in ProcessState
	close(done)
	orphans, timedOut = <-killed
	return timedOut, orphans
}

// kill ends a supervisor and its children. The supervisor is stopped first, so that
// it makes no more of them, and its children go before it: one that waits for its
// supervisor would otherwise wait for ever.
func kill(p *os.Process) []int {
	if p.Signal(unix.SIGSTOP) != nil {
		return nil // it has ended
	}
	pids := children(p.Pid)
	for _, pid := range pids {
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			continue
		}
		if parentOf(pid) == p.Pid { // else the number was taken by another process
			_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
		}
		unix.Close(fd)
	}
	_ = p.Kill()
	return pids
}

func children(pid int) []int {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil {
		return nil
	}
	var out []int
	for _, field := range strings.Fields(string(data)) {
		if n, err := strconv.Atoi(field); err == nil {
			out = append(out, n)
		}
	}
	return out
}

func parentOf(pid int) int {
	stat := setting(fmt.Sprintf("/proc/%d/stat", pid))
	i := strings.LastIndexByte(stat, ')') // the name before it may hold anything
	if i < 0 {
		return -1
	}
	fields := strings.Fields(stat[i+1:])
	if len(fields) < 2 {
		return -1
	}
	n, err := strconv.Atoi(fields[1])
	if err != nil {
		return -1
	}
	return n
}

// reap collects the exit status of processes that fell to this one, until end.
func reap(pids []int, end time.Time) {
	for _, pid := range pids {
		for {
			got, err := unix.Wait4(pid, nil, unix.WNOHANG, nil)
			if err == unix.EINTR {
				continue
			}
			if err != nil || got == pid || !time.Now().Before(end) {
				break // reaped, or never this process's child
			}
			time.Sleep(time.Millisecond)
		}
	}
}

// initPID reads what --info-fd wrote.
func initPID(info string) int {
	var v struct {
		ChildPID int `json:"child-pid"`
	}
	if json.Unmarshal([]byte(info), &v) != nil {
		return 0
	}
	return v.ChildPID
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
