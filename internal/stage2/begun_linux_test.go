package stage2

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandboxd/internal/stage2/spec"
)

// next reads one message.
func next(t *testing.T, fd int) spec.Message {
	t.Helper()
	buf := make([]byte, spec.MaxMessage)
	n, _, err := unix.Recvfrom(fd, buf, 0)
	if err != nil {
		t.Fatal(err)
	}
	m, err := spec.DecodeMessage(buf[:n])
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func tell(t *testing.T, fd int, word byte, rights ...int) {
	t.Helper()
	var oob []byte
	if len(rights) > 0 {
		oob = unix.UnixRights(rights...)
	}
	if err := unix.Sendmsg(fd, []byte{word}, oob, nil, unix.MSG_NOSIGNAL); err != nil {
		t.Fatal(err)
	}
}

// Stage 2 says first that it has begun. The word may come before its report, behind which
// it counts.
func TestBegun(t *testing.T) {
	eachWorld(t, func(t *testing.T, w world) {
		marker := filepath.Join(w.dir, "ran")
		w.talk = func(t *testing.T, fd int) []spec.Message {
			if m := next(t, fd); m.Begun == nil {
				t.Fatalf("got %s", show([]spec.Message{m}))
			}
			tell(t, fd, spec.Go)
			return []spec.Message{next(t, fd)}
		}
		w.run(t, w.spec("touch", marker).Append(nil)).report(t)
		if _, err := os.Stat(marker); err != nil {
			t.Error(err)
		}
	})
}

// A standby's command runs by the word that comes with it, or else by one behind it.
func TestCommandWithTheWord(t *testing.T) {
	for _, word := range []byte{spec.Go, spec.Wait} {
		eachWorld(t, func(t *testing.T, w world) {
			marker := filepath.Join(w.dir, "ran")
			s := w.spec("touch", marker)
			command := memfd(t, s.Command.Append(nil))
			defer command.Close()
			s.Standby, s.Command = true, spec.Command{}
			w.talk = func(t *testing.T, fd int) []spec.Message {
				if m := next(t, fd); m.Parked == nil {
					t.Fatalf("got %s", show([]spec.Message{m}))
				}
				tell(t, fd, word, int(command.Fd()))
				m := next(t, fd)
				if word == spec.Wait {
					time.Sleep(20 * time.Millisecond)
					if _, err := os.Stat(marker); err == nil {
						t.Error("the command ran without the word")
					}
					tell(t, fd, spec.Go)
				}
				return []spec.Message{m}
			}
			w.run(t, s.Append(nil)).report(t)
			if _, err := os.Stat(marker); err != nil {
				t.Error(err)
			}
		})
	}
}
