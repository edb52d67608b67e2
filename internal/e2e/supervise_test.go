//go:build linux

package e2e

import (
	"strings"
	"testing"

	"sandboxd/internal/testenv"
	"sandboxd/protocol"
)

// waitOut reads until the stream's text holds word.
func (c *conn) waitOut(id uint64, word string) string {
	c.t.Helper()
	var got string
	for !strings.Contains(got, word) {
		f := c.next()
		o, ok := f.Body.(protocol.ExecOut)
		if !ok || f.ID != id {
			c.t.Fatalf("got %+v before %q came", f, word)
		}
		got += string(o.Data)
	}
	return got
}

func TestCancelReachesTheHandler(t *testing.T) {
	testenv.EachUser(t, func(t *testing.T, u testenv.User) {
		dir := testenv.TempDir(t, u)
		c := connect(t, u, basePolicy(dir))
		c.start(2, dir, "sh", "-c", `trap 'echo handled; exit 7' TERM; echo ready; while :; do sleep 0.01; done`)
		c.waitOut(2, "ready")
		c.send(2, protocol.Cancel{})
		r := c.collect(2)
		if r.exit == nil || r.exit.Code != 7 || !r.exit.Cancelled || r.exit.TimedOut || !strings.Contains(r.stdout, "handled") {
			t.Errorf("got %+v, %q", r.exit, r.stdout)
		}
		c.start(3, dir, "sh", "-c", `trap '' TERM; echo ready; while :; do sleep 0.01; done`)
		c.waitOut(3, "ready")
		c.send(3, protocol.Cancel{})
		c.send(3, protocol.Cancel{})
		if r := c.collect(3); r.exit == nil || r.exit.Code != 137 || r.exit.Signal != 9 || !r.exit.Cancelled {
			t.Errorf("got %+v", r.exit)
		}
	})
}

func TestDeadline(t *testing.T) {
	u := testenv.Ordinary(t)
	dir := testenv.TempDir(t, u)
	p := basePolicy(dir)
	p.Limits.WallSeconds = 1
	c := connect(t, u, p)
	r := c.try(2, dir, "sleep 600")
	if r.exit.Code != 143 || !r.exit.TimedOut || !r.exit.Cancelled {
		t.Errorf("got %+v", r.exit)
	}
	c.send(3, protocol.ExecStart{Argv: []string{"/bin/true"}, Cwd: dir, Token: []byte("t"),
		Env: map[string]string{}, Limits: protocol.Limits{WallSeconds: 600}.Append(nil)})
	if r := c.collect(3); r.exit == nil || r.exit.Code != 0 || r.exit.TimedOut || r.exit.Cancelled {
		t.Errorf("got %+v, %+v", r.exit, r.fail)
	}
}

// The command's end is the run's end, whoever still holds its pipes.
func TestOrphanHoldsThePipe(t *testing.T) {
	testenv.EachUser(t, func(t *testing.T, u testenv.User) {
		dir := testenv.TempDir(t, u)
		c := connect(t, u, basePolicy(dir))
		r := c.sh(2, dir, `setsid sleep 600 & head -c 10000 /dev/zero; echo tail`)
		if len(r.stdout) != 10005 || !strings.HasSuffix(r.stdout, "tail\n") || r.exit.StdoutTruncated {
			t.Errorf("got %d bytes, %+v", len(r.stdout), r.exit)
		}
		c.send(9, protocol.Shutdown{})
		if code := c.wait(); code != 0 {
			t.Errorf("exit %d", code)
		}
	})
}

func TestStdin(t *testing.T) {
	u := testenv.Ordinary(t)
	dir := testenv.TempDir(t, u)
	c := connect(t, u, basePolicy(dir))
	c.start(2, dir, "cat")
	c.send(2, protocol.ExecStdin{Data: []byte("one ")})
	c.send(2, protocol.ExecStdin{Data: []byte("two"), EOF: true})
	if r := c.collect(2); r.stdout != "one two" || r.exit.StdoutBytes != 7 {
		t.Errorf("got %q, %+v", r.stdout, r.exit)
	}
	c.send(2, protocol.ExecStdin{Data: []byte("late")})
	if e, ok := c.next().Body.(protocol.ErrorBody); !ok || e.Code != protocol.CodeNoExec {
		t.Errorf("got %+v", e)
	}
	// A command that closes its stdin early is seen to have done so.
	c.start(3, dir, "sh", "-c", `exec <&-; echo closed; read x <fifo || sleep 60`)
	c.waitOut(3, "closed")
	testenv.Eventually(t, "no_exec", func() bool {
		c.send(3, protocol.ExecStdin{Data: make([]byte, 1<<16)})
		c.send(4, protocol.Heartbeat{})
		e, ok := c.next().Body.(protocol.ErrorBody)
		if ok {
			c.next()
			return e.Code == protocol.CodeNoExec
		}
		return false
	})
	c.send(3, protocol.Cancel{})
	c.collect(3)
}

func TestUnreadStdinDoesNotStopTheLoop(t *testing.T) {
	u := testenv.Ordinary(t)
	dir := testenv.TempDir(t, u)
	c := connect(t, u, basePolicy(dir))
	c.start(2, dir, "sleep", "60")
	for range 8 {
		c.send(2, protocol.ExecStdin{Data: make([]byte, 1<<20)})
	}
	c.send(3, protocol.Heartbeat{})
	if f := c.next(); f.Kind != protocol.KindHeartbeat {
		t.Errorf("got %+v", f)
	}
	c.send(2, protocol.Cancel{})
	if r := c.collect(2); r.exit == nil || r.exit.Code != 143 {
		t.Errorf("got %+v", r)
	}
}

func TestOutputCap(t *testing.T) {
	u := testenv.Ordinary(t)
	dir := testenv.TempDir(t, u)
	for _, tc := range []struct {
		cap, produced, sent uint64
		cut                 bool
	}{{0, 200000, 200000, false}, {1, 1, 1, false}, {1, 2, 1, true}, {65535, 200000, 65535, true}, {65536, 65536, 65536, false}, {65536, 65537, 65536, true}, {65537, 200000, 65537, true}} {
		p := basePolicy(dir)
		p.Limits.OutputBytes = tc.cap
		c := connect(t, u, p)
		c.start(2, dir, "head", "-c", uintText(tc.produced), "/dev/zero")
		var sent, marks uint64
		for {
			f := c.next()
			if x, ok := f.Body.(protocol.ExecExit); ok {
				if x.Code != 0 || x.StdoutBytes != tc.sent || x.StdoutTruncated != tc.cut || x.StderrTruncated {
					t.Errorf("%+v: got %+v", tc, x)
				}
				break
			}
			o := f.Body.(protocol.ExecOut)
			sent += uint64(len(o.Data))
			if o.Bytes != sent {
				t.Errorf("%+v: counts %d of %d", tc, o.Bytes, sent)
			}
			if o.Truncated {
				marks++
			}
		}
		if sent != tc.sent || (marks == 1) != tc.cut || marks > 1 {
			t.Errorf("%+v: %d bytes, %d marks", tc, sent, marks)
		}
	}
}

func TestBusyAndBackToBack(t *testing.T) {
	u := testenv.Ordinary(t)
	dir := testenv.TempDir(t, u)
	c := connect(t, u, basePolicy(dir))
	c.start(2, dir, "sleep", "60")
	c.start(3, dir, "true")
	if f := c.next(); f.ID != 3 || f.Body.(protocol.ErrorBody).Code != protocol.CodeBusy {
		t.Errorf("got %+v", f)
	}
	c.start(2, dir, "true")
	if f := c.next(); f.ID != 2 || f.Body.(protocol.ErrorBody).Code != protocol.CodeBusy {
		t.Errorf("got %+v", f)
	}
	c.send(2, protocol.Cancel{})
	c.collect(2)
	for i := range uint64(200) {
		c.start(10+i, dir, "true")
		if r := c.collect(10 + i); r.exit == nil || r.exit.Code != 0 {
			t.Fatalf("%d: got %+v %+v", i, r.exit, r.fail)
		}
	}
}

func TestExitCodes(t *testing.T) {
	u := testenv.Ordinary(t)
	dir := testenv.TempDir(t, u)
	c := connect(t, u, basePolicy(dir))
	for i, tc := range []struct {
		script       string
		code, signal int
	}{{"exit 0", 0, 0}, {"exit 1", 1, 0}, {"exit 143", 143, 0}, {"exit 255", 255, 0},
		{"kill -TERM $$", 143, 15}, {"kill -KILL $$", 137, 9}, {"kill -SEGV $$", 139, 11}} {
		r := c.try(uint64(2+i), dir, tc.script)
		if r.exit.Code != tc.code || r.exit.Cancelled || r.exit.TimedOut {
			t.Errorf("%s: got %+v", tc.script, r.exit)
		}
		if s := r.exit.Signal; s != tc.signal && s != 0 { // 0 where the kernel does not tell (before 6.15)
			t.Errorf("%s: signal %d, expected %d", tc.script, s, tc.signal)
		}
	}
}

// A fake bubblewrap makes no claim true.
func TestFakeBubblewrap(t *testing.T) {
	u := testenv.Ordinary(t)
	dir := testenv.TempDir(t, u)
	real := `case "$1" in --help|--version) exec /usr/bin/bwrap "$@";; esac; for a; do [ "$a" = --args ] && break; done; `
	for name, body := range map[string]string{
		"exit 1":       `exit 1`,
		"execute only": `while [ "$1" != -- ]; do shift; done; shift; exec "$@"`,
	} {
		t.Run(name, func(t *testing.T) {
			fake := dir + "/bwrap"
			writeMode(t, fake, "#!/bin/sh\n"+real+body+"\n", 0o755)
			c := connect(t, u, basePolicy(dir), "--bwrap", fake, "--allow-unenforced")
			c.start(2, dir, "true")
			r := c.collect(2)
			if r.exit != nil {
				for _, tag := range []string{"bwrap", "mounts"} {
					if has(r.exit.Enforcement, tag) {
						t.Errorf("claims %s: %q", tag, r.exit.Enforcement)
					}
				}
			}
			if r.fail == nil || r.fail.Code != protocol.CodeSpawnFailed || !strings.Contains(r.fail.Msg, "bwrap") && !strings.Contains(r.fail.Msg, "bubblewrap") {
				t.Errorf("got %+v, %+v, expected spawn_failed naming bubblewrap", r.exit, r.fail)
			}
		})
	}
}
