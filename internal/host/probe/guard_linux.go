package probe

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sandboxd/internal/host"
)

// Role is the argument that makes this program the process that tries bubblewrap.
// Nobody types it.
const Role = "--probe"

// answer is what that process says on its standard output.
type answer struct {
	Version string
	Flags   map[string]bool
	State   host.State
	Cause   host.Cause
	Reason  string
}

// guardBound is how long the trying process may take to end after its own deadline,
// or after it was told to.
const guardBound = sweepBound + 2*time.Second

// ask has bubblewrap tried by a process of its own, which ends with everything below
// it when this one does: its standard input is a pipe whose writer is here, so that
// not even SIGKILL leaves a bubblewrap that hangs. A parent-death signal would not
// do. What bubblewrap cloned and has not yet released waits for it for ever, and the
// children of any other program would stay.
func ask(ctx context.Context, path string, o Options) (answer, error) {
	var a answer
	cmd := exec.Command("/proc/self/exe", Role, path, strconv.FormatBool(o.AllowNestedUserns), o.Deadline.String())
	cmd.Args[0], cmd.Env, cmd.Dir = "sandboxd", []string{}, "/"
	// A group of its own: what a terminal sends to the helper's does not end it before
	// it has cleaned up.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	leash, err := cmd.StdinPipe()
	if err != nil {
		return a, fmt.Errorf("bubblewrap could not be tried: %w", err)
	}
	defer leash.Close()
	var said bytes.Buffer
	cmd.Stdout, cmd.WaitDelay = &said, time.Second
	if err := cmd.Start(); err != nil {
		return a, fmt.Errorf("bubblewrap could not be tried: %w", err)
	}
	late := time.AfterFunc(o.Deadline+guardBound, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	stop := context.AfterFunc(ctx, func() {
		leash.Close()
		late.Reset(guardBound)
	})
	defer stop()
	err = cmd.Wait()
	switch {
	case ctx.Err() != nil:
		return a, errors.New("bubblewrap's trial was stopped")
	case err != nil:
		return a, fmt.Errorf("bubblewrap could not be tried: the process for it ended early (%w)", err)
	}
	if err := json.Unmarshal(said.Bytes(), &a); err != nil {
		return answer{}, fmt.Errorf("bubblewrap could not be tried: %w", err)
	}
	return a, nil
}

// Main is the role: it tries the bubblewrap of its arguments until its deadline or
// the end of its standard input, says what it found, and leaves no process behind.
func Main(args []string) int {
	// What it starts follows this thread.
	runtime.LockOSThread()
	if len(args) != 3 {
		fmt.Fprintln(os.Stderr, "sandboxd: "+Role+" is for sandboxd itself")
		return 2
	}
	nested, err1 := strconv.ParseBool(args[1])
	limit, err2 := time.ParseDuration(args[2])
	if err := errors.Join(err1, err2); err != nil {
		fmt.Fprintln(os.Stderr, "sandboxd:", err)
		return 2
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		fmt.Fprintln(os.Stderr, "sandboxd: cannot become a child subreaper:", err)
		return 1
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	if json.NewEncoder(os.Stdout).Encode(try(ctx, args[0], nested)) != nil {
		return 1
	}
	return 0
}
