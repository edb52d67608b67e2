//go:build linux

package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"syscall"
	"testing"
	"time"

	"sandboxd/internal/testenv"
	"sandboxd/protocol"
)

// chaosCommands are what a broker without a plan runs.
var chaosCommands = [][]string{
	{"true"}, {"false"}, {"cat"}, {"sleep", "600"}, {"no-such-command"},
	{"sh", "-c", "setsid sleep 600 & (sleep 600 &); exit 3"},
	{"sh", "-c", "head -c 3000000 /dev/zero; head -c 3000000 /dev/zero >&2"},
	{"sh", "-c", "trap 'exit 4' TERM; while :; do sleep 0.01; done"},
	{"sh", "-c", "setsid cat /dev/zero & kill -KILL $$"},
	{"sh", "-c", "exec <&-; sleep 0.05"},
}

// chaos sends n random frames and gives the ids of its exec_starts.
func (c *sup) chaos(r *rand.Rand, dir string, n int) (starts []uint64) {
	last := uint64(1)
	for i := range uint64(n) {
		id := 10 + i
		switch k := r.IntN(20); {
		case k < 7:
			cwd := dir
			if k == 0 {
				cwd = "/nowhere"
			}
			c.start(id, cwd, chaosCommands[r.IntN(len(chaosCommands))]...)
			starts, last = append(starts, id), id
		case k < 10:
			c.send(last, protocol.ExecStdin{Data: make([]byte, r.IntN(200000)), EOF: r.IntN(3) == 0})
		case k < 14:
			c.send(last, protocol.Cancel{})
		case k < 16:
			c.send(id, protocol.Heartbeat{})
		default:
			time.Sleep(time.Duration(r.IntN(30)) * time.Millisecond)
		}
	}
	return starts
}

// heard counts, by id, what ended an exec_start; every other frame may come at will.
func (c *sup) heard() <-chan map[uint64]int {
	out := make(chan map[uint64]int, 1)
	go func() {
		ends, gone := map[uint64]int{}, map[uint64]bool{}
		defer func() { out <- ends }()
		for {
			f, err := c.out.Next()
			if err != nil {
				return
			}
			switch b := f.Body.(type) {
			case protocol.ExecExit:
				ends[f.ID]++
				gone[f.ID] = true
			case protocol.ExecOut:
				if gone[f.ID] {
					ends[f.ID] += 1000 // output behind the terminal frame
				}
			case protocol.ErrorBody:
				if b.Code != protocol.CodeNoExec {
					ends[f.ID]++
					gone[f.ID] = true
				}
			}
		}
	}()
	return out
}

// Whatever a broker sends, every exec_start is answered by one terminal frame, no
// output follows it, the end is in order and nothing stays.
func TestChaos(t *testing.T) {
	eachMode(t, func(t *testing.T, m mode) {
		adopt(t)
		for range scaled(150, 8) {
			seed := rand.Uint64()
			r := rand.New(rand.NewPCG(seed, 1))
			c := m.connect(m.masked())
			heard := c.heard()
			starts := c.chaos(r, m.dir, 5+r.IntN(40))
			way, all := r.IntN(4), true
			switch way {
			case 0:
				c.in.Close()
			case 1:
				c.send(5, protocol.Shutdown{})
			case 2:
				_ = c.cmd.Process.Signal(syscall.SIGTERM)
				all = false // frames that it had not read yet are not answered
			case 3:
				_ = c.cmd.Process.Kill()
				all = false
			}
			ends := <-heard
			_ = c.cmd.Wait()
			what := fmt.Sprintf("seed %d, way %d", seed, way)
			if code := c.cmd.ProcessState.ExitCode(); way != 3 && code != 0 {
				t.Errorf("%s: exit %d: %s", what, code, c.stderr)
			}
			for _, id := range starts {
				if n := ends[id]; n > 1 || all && n != 1 {
					t.Errorf("%s: %d ends of %d", what, n, id)
				}
				delete(ends, id)
			}
			if len(ends) > 0 {
				t.Errorf("%s: ends of nothing: %v", what, ends)
			}
			if way == 3 && m.degraded() {
				for _, p := range testenv.Descendants(os.Getpid()) { // only the command is promised to go
					_ = syscall.Kill(p.PID, syscall.SIGKILL)
				}
			}
			nobodyLives(t, what)
			if way == 3 {
				m.pristine()
			} else if left, err := os.ReadDir(m.dir); err != nil || len(left) > 0 {
				t.Errorf("%s: left in the workspace: %v %v", what, left, err)
			}
			if t.Failed() {
				return
			}
		}
	})
}
