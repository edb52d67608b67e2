package ready

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func waiter(t *testing.T, fd int, events uint32) *Waiter {
	t.Helper()
	w, err := New(fd, events)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return w
}

func pidfd(t *testing.T, c *exec.Cmd) int {
	t.Helper()
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	fd, err := unix.PidfdOpen(c.Process.Pid, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	return fd
}

func TestEndOfAProcess(t *testing.T) {
	c := exec.Command("sh", "-c", "read x")
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	w := waiter(t, pidfd(t, c), unix.EPOLLIN)
	_ = w.Within(20 * time.Millisecond)
	if err := w.Wait(); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("while it runs: %v", err)
	}
	_ = w.Within(0)
	in.Close()
	if err := w.Wait(); err != nil {
		t.Fatal(err)
	}
	if err := w.Wait(); err != nil { // it stays so
		t.Fatal(err)
	}
}

func TestInterruptAndClose(t *testing.T) {
	w := waiter(t, pidfd(t, exec.Command("sleep", "600")), unix.EPOLLIN)
	ended := make(chan error)
	go func() { ended <- w.Wait() }()
	time.Sleep(5 * time.Millisecond)
	w.Interrupt()
	if err := <-ended; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("interrupted: %v", err)
	}
	_ = w.Within(0)
	go func() { ended <- w.Wait() }()
	time.Sleep(5 * time.Millisecond)
	w.Close()
	if err := <-ended; !errors.Is(err, os.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}

func TestWhatCannotBePolled(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "f"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := New(int(f.Fd()), unix.EPOLLIN); !errors.Is(err, unix.EPERM) {
		t.Errorf("a regular file: %v", err)
	}
	if Reader(f) != io.Reader(f) {
		t.Error("a regular file has another reader")
	}
}

// A reader of either kind gives every byte and the end, and leaves the flags of what
// it was given alone.
func TestReader(t *testing.T) {
	for name, pair := range map[string]func() ([2]int, error){
		"pipe": func() (p [2]int, err error) { err = unix.Pipe2(p[:], unix.O_CLOEXEC); return p, err },
		"socket": func() ([2]int, error) {
			return unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := pair()
			if err != nil {
				t.Fatal(err)
			}
			in, out := os.NewFile(uintptr(p[0]), "in"), os.NewFile(uintptr(p[1]), "out")
			defer in.Close()
			r := Reader(in)
			if r == io.Reader(in) {
				t.Fatal("it would block a thread")
			}
			want := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
			go func() {
				defer out.Close()
				for i := 0; i < len(want); i += 1 << 16 {
					if i < 4<<16 {
						time.Sleep(5 * time.Millisecond) // the reader has to wait
					}
					_, _ = out.Write(want[i : i+1<<16])
				}
			}()
			got, err := io.ReadAll(r)
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("%d of %d bytes, %v", len(got), len(want), err)
			}
			if flags, err := unix.FcntlInt(uintptr(p[0]), unix.F_GETFL, 0); err != nil || flags&unix.O_NONBLOCK != 0 {
				t.Errorf("flags %#x, %v", flags, err)
			}
		})
	}
}
