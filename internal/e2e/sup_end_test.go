//go:build linux

package e2e

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sandboxd/internal/testenv"
	"sandboxd/protocol"
)

// The command's end is the run's end, whoever still holds its pipes or writes to
// them, and every byte that it wrote itself arrives.
func TestCommandEndIsTheEnd(t *testing.T) {
	everyMode(t, func(t *testing.T, m mode) {
		c, tag := m.connect(m.policy()), uniqueSleep()
		r := c.sh(2, m.dir, `setsid sleep `+tag+` & echo hi`)
		if r.stdout != "hi\n" || r.exit.StdoutTruncated {
			t.Errorf("got %q, %+v", r.stdout, r.exit)
		}
		if left := tagged(tag); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
		for id := uint64(3); id < 13; id++ {
			if r := c.sh(id, m.dir, `head -c 10000 /dev/zero; echo tail; sleep `+tag+` & head -c 60000 /dev/zero >&2`); len(r.stdout) != 10005 || len(r.stderr) != 60000 {
				t.Errorf("%d and %d bytes, %+v", len(r.stdout), len(r.stderr), r.exit)
			}
		}
		c.down()
		if left := tagged(tag); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
	})
}

// A grandchild that floods cannot make the run longer.
func TestFloodAfterTheEnd(t *testing.T) {
	everyMode(t, func(t *testing.T, m mode) {
		c := m.connect(m.policy())
		for id := uint64(2); id < 7; id++ {
			r := c.sh(id, m.dir, `setsid sh -c 'exec cat /dev/zero' & setsid sh -c 'exec cat /dev/zero >&2' & sleep 0.05; echo hi`)
			if !strings.Contains(r.stdout, "hi\n") {
				t.Error("the command's own bytes are lost")
			}
		}
		c.down()
	})
}

// A process outside the jail that was handed the pipe delays the end by no more
// than the drain bound, and the cut shows.
func TestPipeHeldOutside(t *testing.T) {
	py := testenv.Tool(t, "python3")
	eachMode(t, func(t *testing.T, m mode) {
		sock := filepath.Join(m.dir, "sock")
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: sock, Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		if err := os.Chmod(sock, 0o777); err != nil {
			t.Fatal(err)
		}
		held := make(chan int, 1)
		go func() {
			conn, err := l.AcceptUnix()
			if err != nil {
				held <- -1
				return
			}
			oob := make([]byte, 64)
			_, n, _, _, _ := conn.ReadMsgUnix(make([]byte, 8), oob)
			conn.Close()
			fd := -1
			if msgs, err := unix.ParseSocketControlMessage(oob[:n]); err == nil && len(msgs) == 1 {
				if fds, err := unix.ParseUnixRights(&msgs[0]); err == nil {
					fd = fds[0]
				}
			}
			held <- fd
		}()
		c := m.connect(m.policy())
		r := c.try(2, m.dir, py+` -c 'import socket,array
s=socket.socket(socket.AF_UNIX); s.connect("sock")
s.sendmsg([b"x"],[(socket.SOL_SOCKET,socket.SCM_RIGHTS,array.array("i",[1]))])
s.recv(1)'; echo mine`)
		if has(r.exit.Enforcement, "landlock-unix") {
			return // path sockets do not reach out of it
		}
		fd := <-held
		if fd < 0 {
			t.Fatalf("the pipe was not handed out: %q %q", r.stdout, r.stderr)
		}
		defer unix.Close(fd)
		if r.stdout != "mine\n" || !r.exit.StdoutTruncated || r.exit.StderrTruncated {
			t.Errorf("got %q, %+v", r.stdout, r.exit)
		}
		c.send(3, protocol.Heartbeat{})
		if f := c.next(); f.Kind != protocol.KindHeartbeat {
			t.Errorf("got %+v", f)
		}
		c.down()
	})
}
