//go:build linux

package e2e

import (
	"crypto/sha256"
	"fmt"
	"hash"
	"math/rand/v2"
	"os"
	"strings"
	"syscall"
	"testing"

	"sandboxd/internal/testenv"
	"sandboxd/protocol"
)

// stuff sends n MiB of stdin without caring whether it is taken.
func (c *sup) stuff(id uint64, n int) {
	frame, err := protocol.AppendFrame(nil, id, protocol.ExecStdin{Data: make([]byte, 1<<20)})
	if err != nil {
		c.t.Fatal(err)
	}
	for range n {
		if _, err := c.in.Write(frame); err != nil {
			return
		}
	}
}

// memory is a line of the helper's /proc/<pid>/status, in KiB.
func (c *sup) memory(field string) int {
	c.t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.cmd.Process.Pid))
	if err != nil {
		c.t.Fatal(err)
	}
	for _, line := range strings.Split(string(b), "\n") {
		var kib int
		if rest, ok := strings.CutPrefix(line, field+":"); ok {
			if _, err := fmt.Sscan(rest, &kib); err == nil {
				return kib
			}
		}
	}
	c.t.Fatalf("no %s in /proc/<pid>/status", field)
	return 0
}

// Up to the bound nothing waits: 8 MiB for a command that never reads.
func TestUnreadStdinIsNoObstacle(t *testing.T) {
	eachMode(t, func(t *testing.T, m mode) {
		p := m.policy()
		c := m.connect(p)
		c.start(2, m.dir, "sleep", "600")
		c.stuff(2, 8)
		c.send(3, protocol.Heartbeat{})
		if f := c.next(); f.Kind != protocol.KindHeartbeat || f.ID != 3 {
			t.Errorf("got %+v", f)
		}
		c.send(2, protocol.Cancel{})
		if r := c.collect(2); r.exit == nil || r.exit.Code != 143 || !r.exit.Cancelled {
			t.Errorf("got %+v", r)
		}
		p.Limits.WallSeconds = 1
		c.send(4, protocol.ExecStart{Argv: []string{"sleep", "600"}, Cwd: m.dir, Token: []byte("t"),
			Env: map[string]string{"PATH": os.Getenv("PATH")}, Limits: p.Limits.Append(nil)})
		c.stuff(4, 8)
		if r := c.collect(4); r.exit == nil || r.exit.Code != 143 || !r.exit.TimedOut {
			t.Errorf("got %+v %+v", r.exit, r.fail)
		}
		c.down()
	})
}

// Beyond the bound the loop waits; a deadline, a signal and a hang-up end the wait.
func TestTooMuchStdin(t *testing.T) {
	eachMode(t, func(t *testing.T, m mode) {
		for _, tc := range []struct {
			name string
			wall uint64
			do   func(c *sup)
		}{
			{"deadline", 3, func(*sup) {}},
			{"signal", 0, func(c *sup) { c.cmd.Process.Signal(syscall.SIGTERM) }},
			{"hang-up", 0, func(c *sup) { c.hangUp() }},
		} {
			t.Run(tc.name, func(t *testing.T) {
				m := mode{m.name, t, m.u, m.dir}
				tag := uniqueSleep()
				p := m.policy()
				p.Limits.WallSeconds = tc.wall
				c := m.connect(p)
				c.until(2, m.dir, "sh", "-c", "echo ready; exec sleep "+tag)
				stuffed := make(chan struct{})
				go func() { defer close(stuffed); c.stuff(2, 40) }()
				if tc.wall == 0 {
					testenv.Eventually(t, "the queue is full", func() bool { return c.memory("VmRSS") > 26<<10 })
				}
				tc.do(c)
				switch {
				case tc.wall > 0:
					r := c.collect(2)
					for r.fail != nil && r.fail.Code == protocol.CodeNoExec {
						r = c.collect(2) // a chunk met the end, before its frame was out
					}
					if r.exit == nil || !r.exit.TimedOut || r.exit.Code != 143 {
						t.Errorf("got %+v %+v", r.exit, r.fail)
					}
					go func() { // what comes after the end is answered, one by one
						for {
							if _, err := c.out.Next(); err != nil {
								return
							}
						}
					}()
					<-stuffed
					c.send(9, protocol.Shutdown{})
				default:
					<-stuffed
				}
				if err := c.cmd.Wait(); tc.name != "hang-up" && err != nil {
					t.Errorf("%v: %s", err, c.stderr)
				}
				if left := tagged(tag); len(left) > 0 {
					t.Errorf("left: %v", left)
				}
			})
		}
	})
}

// A broker that has stopped reading can still cancel.
func TestCancelWithoutReading(t *testing.T) {
	eachMode(t, func(t *testing.T, m mode) {
		c, tag := m.connect(m.policy()), uniqueSleep()
		c.start(2, m.dir, "sh", "-c", `exec 3>&2 2>/dev/null # the shell itself must not block on telling of a signal
trap 'exit 4' TERM; sleep `+tag+` & cat /dev/zero & cat /dev/zero >&3 & while :; do sleep 0.01; done`)
		testenv.Eventually(t, "the command runs", func() bool { return len(tagged("sleep\x00"+tag)) > 0 })
		for i := range uint64(500) { // more than the replies' queue holds
			c.send(100+i, protocol.Heartbeat{})
		}
		c.send(2, protocol.Cancel{})
		testenv.Eventually(t, "the command's end", func() bool { return len(tagged(tag)) == 0 })
		var exit *protocol.ExecExit
		for exit == nil {
			if x, ok := c.next().Body.(protocol.ExecExit); ok {
				exit = &x
			}
		}
		if exit.Code != 4 || !exit.Cancelled {
			t.Errorf("got %+v", exit)
		}
		c.send(9, protocol.Shutdown{})
		if code := c.wait(); code != 0 {
			t.Errorf("exit %d: %s", code, c.stderr)
		}
	})
}

// Much data through cat: the same bytes come back, in bounded memory.
func TestThroughCat(t *testing.T) {
	eachMode(t, func(t *testing.T, m mode) {
		c := m.connect(m.policy())
		c.start(2, m.dir, "cat")
		total := scaled(1<<30, 48<<20)
		sent, got := sha256.New(), sha256.New()
		done := make(chan struct{})
		go func() {
			defer close(done)
			feed(c, sent, total)
		}()
		var n uint64
		for {
			f := c.next()
			if o, ok := f.Body.(protocol.ExecOut); ok {
				got.Write(o.Data)
				n += uint64(len(o.Data))
				continue
			}
			x, ok := f.Body.(protocol.ExecExit)
			if !ok || x.Code != 0 || x.StdoutBytes != n || n != uint64(total) || x.StdoutTruncated {
				t.Errorf("%d bytes of %d, %+v", n, total, f.Body)
			}
			break
		}
		<-done
		if string(sent.Sum(nil)) != string(got.Sum(nil)) {
			t.Error("other bytes came back")
		}
		if peak := c.memory("VmHWM"); peak > 160<<10 {
			t.Errorf("the helper took %d KiB", peak)
		}
		c.down()
	})
}

// feed sends total random bytes in frames of uneven size, then eof.
func feed(c *sup, sum hash.Hash, total int) {
	src := rand.NewChaCha8([32]byte{1})
	buf := make([]byte, 1<<20)
	for left := total; left > 0; {
		b := buf[:min(left, 1+rand.IntN(len(buf)))]
		_, _ = src.Read(b)
		sum.Write(b)
		left -= len(b)
		frame, err := protocol.AppendFrame(nil, 2, protocol.ExecStdin{Data: b, EOF: left == 0})
		if err != nil {
			panic(err)
		}
		if _, err := c.in.Write(frame); err != nil {
			return
		}
	}
}
