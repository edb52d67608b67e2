//go:build linux || darwin

package proctrack

import (
	"errors"
	"fmt"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

func signal(pid int32, sig int) error { return syscall.Kill(int(pid), syscall.Signal(sig)) }

// A child of a shell is followed after its parent has ended, and
// gets the signal; a birth that does not match keeps the signal back.
func TestRealProcesses(t *testing.T) {
	cmd := exec.Command("/bin/sh", "-c", `sh -c 'echo $$; exec sleep 300' & read x`)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var pid int32
	if _, err := fmt.Fscan(out, &pid); err != nil {
		t.Fatal(err)
	}
	table := realTable
	sh, err := table.Look(int32(cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	w := Follow(table, sh, signal)
	defer w.Stop()
	if n, err := w.Sample(); n < 2 || err != nil {
		t.Fatalf("%d living, %v; want the shell and its grandchild", n, err)
	}
	in.Close()
	if err := cmd.Wait(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		t.Fatal(err)
	}
	sleeper, err := table.Look(pid)
	if err != nil {
		t.Fatalf("the sleeper ended with its shell: %v", err)
	}
	wrong := sleeper
	wrong.Born++
	if err := w.deliver(wrong, int(syscall.SIGKILL), 0); !errors.Is(err, ErrGone) {
		t.Errorf("another birth: %v, want ErrGone", err)
	}
	if _, err := table.Look(pid); err != nil {
		t.Fatalf("the sleeper got a signal that was meant for another: %v", err)
	}
	if n, err := w.Signal(int(syscall.SIGKILL), 0); n != 1 || err != nil {
		t.Errorf("%d signalled, %v; want the sleeper", n, err)
	}
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if p, err := table.Look(pid); err != nil || p.Zombie {
			return
		}
		if time.Now().After(end) {
			t.Fatal("the sleeper lives on")
		}
	}
}
