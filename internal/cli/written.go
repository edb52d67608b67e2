package cli

import (
	"errors"
	"io"
	"os"
	"sync"
	"syscall"
)

// written is for what run says itself beside a command's output, from several goroutines:
// it remembers the first error and writes nothing after it.
type written struct {
	to io.Writer

	mu  sync.Mutex
	err error
}

func (w *written) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return 0, w.err
	}
	n, err := w.to.Write(b)
	w.err = err
	return n, err
}

func (w *written) failed() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// unsaid is the exit code where something that had to be said could not be written: whoever
// reads it must not miss a part and see a success.
func unsaid(code int, err error) int {
	switch {
	case err == nil || code != 0:
		return code
	case errors.Is(err, syscall.EPIPE): // whoever read it went away, and knows
		return exitBrokenPipe
	}
	return exitFailed
}

// patient is a stream that another process which shares it can make non-blocking at any
// moment, as node does with a pipe: the write then waits all the same.
type patient struct{ to io.Writer }

func (p patient) Write(b []byte) (n int, err error) {
	for {
		m, err := p.to.Write(b[n:])
		n += m
		if !errors.Is(err, syscall.EAGAIN) || !takes(p.to) {
			return n, err
		}
	}
}

// lost is a stream that was closed when this process started.
type lost struct{ name string }

func (l lost) Write([]byte) (int, error) {
	return 0, &os.PathError{Op: "write", Path: l.name, Err: syscall.EBADF}
}

// withClosed puts streams that fail in the place of those that were closed from the
// start, as far as that can be told: for run, which would else pass on a command's output
// to nobody and say that all is well.
func withClosed(s System, json bool) System {
	in, ok1 := s.Stdin.(*os.File)
	out, ok2 := file(s.Stdout)
	errs, ok3 := file(s.Stderr)
	if ok1 && ok2 && ok3 {
		nobody, noBoth := closedStreams(in, out, errs)
		if nobody && (json || noBoth) {
			s.Stdout = lost{"/dev/stdout"}
		}
		if noBoth {
			s.Stderr = lost{"/dev/stderr"}
		}
	}
	return s
}
