//go:build linux || darwin

package server

import (
	"bytes"
	"io"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandboxd/protocol"
)

// Frames arrive whole through a pipe that takes a part at a time, blocking or not.
func TestGather(t *testing.T) {
	for _, name := range []string{"blocking", "non-blocking", "non-blocking since"} {
		t.Run(name, func(t *testing.T) {
			blocking := name != "non-blocking"
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			if blocking {
				fd, err := unix.Dup(int(w.Fd())) // Fd makes it blocking
				if err != nil {
					t.Fatal(err)
				}
				w.Close()
				w = os.NewFile(uintptr(fd), "pipe")
			}
			const frames, small = 20, 8000
			out := &protocol.ExecOut{Stream: protocol.Stdout, Data: make([]byte, 65535)}
			for i := range out.Data {
				out.Data[i] = byte(i * 7)
			}
			go func() {
				defer w.Close()
				to := protocol.NewWriter(newGather(w))
				if name == "non-blocking since" { // another process can do that
					conn, err := w.SyscallConn()
					if err == nil {
						err = conn.Control(func(fd uintptr) { err = unix.SetNonblock(int(fd), true) })
					}
					if err != nil {
						t.Error(err)
					}
				}
				for range small { // more than a pipe holds
					if err := to.Write(8, protocol.Heartbeat{}); err != nil {
						t.Error(err)
						return
					}
				}
				for range frames {
					out.Bytes += uint64(len(out.Data))
					if err := to.WriteOut(7, out); err != nil {
						t.Error(err)
					}
				}
			}()
			time.Sleep(20 * time.Millisecond) // the pipe is full
			from := protocol.NewReader(r)
			var got []byte
			beats := 0
			for {
				f, err := from.Next()
				if err == io.EOF {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				if f.Kind == protocol.KindHeartbeat {
					beats++
					continue
				}
				got = append(got, f.Body.(protocol.ExecOut).Data...)
			}
			if beats != small {
				t.Errorf("%d of %d small frames", beats, small)
			}
			if want := bytes.Repeat(out.Data, frames); !bytes.Equal(got, want) {
				t.Errorf("%d bytes, want %d, or other ones", len(got), len(want))
			}
		})
	}
}

func TestGatherAllocatesNothing(t *testing.T) {
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	w := protocol.NewWriter(newGather(null))
	out := &protocol.ExecOut{Stream: protocol.Stdout, Data: make([]byte, 65536), Bytes: 65536}
	if err := w.WriteOut(1, out); err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(100, func() { _ = w.WriteOut(1, out) }); n != 0 {
		t.Errorf("%v allocations per frame, want none", n)
	}
}

// A reader that goes away is an error, not a signal and not an endless loop.
func TestGatherWithoutReader(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	r.Close()
	if err := protocol.NewWriter(newGather(w)).WriteOut(1, &protocol.ExecOut{Stream: protocol.Stdout, Data: []byte("x"), Bytes: 1}); err == nil {
		t.Error("no error")
	}
}

func TestBehind(t *testing.T) {
	whole := []byte("abcdefgh")
	for n := range len(whole) + 1 {
		var got []byte
		for _, p := range behind([][]byte{whole[:1], {}, whole[1:4], whole[4:]}, n) {
			got = append(got, p...)
		}
		if string(got) != string(whole[n:]) {
			t.Errorf("behind %d bytes: %q", n, got)
		}
	}
}
