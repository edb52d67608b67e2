package bench

import (
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandboxd/internal/jail"
)

// relayRole turns this binary into the least that can stand between a command and its
// reader: a process that reads and writes, by pipes as large as the helper's. What it
// reaches is what any supervisor can reach on this machine that looks at what it passes on.
const relayRole = "--relay"

func relay() {
	jail.WidenPipe(0)
	jail.WidenPipe(1)
	buf := make([]byte, 256<<10)
	for {
		n, err := unix.Read(0, buf)
		for done := 0; done < n; {
			m, err := unix.Write(1, buf[done:n])
			if err != nil && err != unix.EINTR {
				os.Exit(1)
			}
			done += max(m, 0)
		}
		if n == 0 || err != nil && err != unix.EINTR {
			return
		}
	}
}

// relayed runs first, a relay and last, each with its stdout as the next one's stdin; nil
// for either end is this process, which reads or writes with a buffer.
func relayed(b *testing.B, first, last *exec.Cmd, in io.Reader, out io.Writer) time.Duration {
	b.Helper()
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	pipe := func() (r, w *os.File) {
		r, w, err := os.Pipe()
		if err != nil {
			b.Fatal(err)
		}
		return r, w
	}
	r1, w1 := pipe()
	r2, w2 := pipe()
	between := exec.Command(self, relayRole)
	between.Stdin, between.Stdout = r1, w2
	started := []*exec.Cmd{between}
	from := time.Now()
	if first != nil {
		first.Stdout = w1
		started = append(started, first)
	}
	if last != nil {
		last.Stdin = r2
		started = append(started, last)
	}
	for _, c := range started {
		if err := c.Start(); err != nil {
			b.Fatal(err)
		}
	}
	r1.Close()
	w2.Close()
	if first == nil {
		_, err = io.CopyBuffer(struct{ io.Writer }{w1}, struct{ io.Reader }{in}, make([]byte, 64<<10))
	}
	w1.Close()
	if last == nil && err == nil {
		_, err = io.CopyBuffer(struct{ io.Writer }{out}, struct{ io.Reader }{r2}, make([]byte, 64<<10))
	}
	r2.Close()
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range started {
		if err := c.Wait(); err != nil {
			b.Fatal(err)
		}
	}
	return time.Since(from)
}
