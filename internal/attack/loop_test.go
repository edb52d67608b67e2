//go:build linux

package attack

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"sandboxd/internal/testenv"
	"sandboxd/protocol"
)

// TestRandomConversations talks to real helpers in random frames, good and bad, at
// random times, and holds what must be true of each conversation: one terminal frame
// for every start that was accepted and none else, an orderly end, no panic, nothing
// left behind. A failure names the seed; SANDBOXD_ATTACK_SEED repeats one.
func TestRandomConversations(t *testing.T) {
	rounds := 12
	if os.Getenv("SANDBOXD_SOAK") == "1" {
		rounds = 2000
	}
	first := rand.Uint64() % 1e9
	if text := os.Getenv("SANDBOXD_ATTACK_SEED"); text != "" {
		rounds = 1
		if _, err := fmt.Sscan(text, &first); err != nil {
			t.Fatal(err)
		}
	}
	u := testenv.Ordinary(t)
	s := newScene(t, u, nil)
	sum := map[string]int{}
	for n := range rounds {
		seed := first + uint64(n)
		t.Run(fmt.Sprint(seed), func(t *testing.T) { converse(t, s, u, seed, sum) })
	}
	t.Logf("%v", sum)
	if sum["exit"] == 0 || sum["error"] == 0 {
		t.Errorf("the conversations prove nothing: %v", sum)
	}
}

// talk is one random conversation, as its reader sees it.
type talk struct {
	starts    map[uint64]bool // sent, each under an id of its own: before the channel's end?
	terminals map[uint64]int
	refusals  map[uint64]int // busy or malformed_frame under a start's id: not accepted
	sum       map[string]int
	over      bool   // something was sent that ends the channel
	last      uint64 // id of the last start
}

func converse(t *testing.T, s *scene, u testenv.User, seed uint64, sum map[string]int) {
	r := rand.New(rand.NewPCG(seed, 1))
	h := start(t, u, s.policy(nil), nil)
	k := &talk{starts: map[uint64]bool{}, terminals: map[uint64]int{}, refusals: map[uint64]int{}, sum: sum, last: 100}
	done := make(chan error, 1)
	go func() { done <- k.read(h) }()
	h.greet()
	tag := fmt.Sprintf("stays-%s-%d", s.Nonce, seed)
	for range 5 + r.IntN(60) {
		if _, err := h.in.Write(k.random(r, s, tag)); err != nil {
			break // the channel is closed: it got something that closes it
		}
		if r.IntN(3) == 0 {
			time.Sleep(time.Duration(r.IntN(20_000)) * time.Microsecond)
		}
	}
	h.in.Close()
	end := time.AfterFunc(testenv.Patience, func() { _ = h.cmd.Process.Kill() })
	defer end.Stop()
	if err := <-done; err != nil {
		t.Errorf("the stream: %v", err)
	}
	_ = h.cmd.Wait()
	if code := h.cmd.ProcessState.ExitCode(); code != 0 && code != 1 {
		t.Errorf("exit %d", code)
	}
	for id, early := range k.starts {
		if got := k.terminals[id] + k.refusals[id]; early && got != 1 || !early && got != 0 {
			t.Errorf("id %d (before the end of the channel: %v): %d terminal frames, %d refusals", id, early, k.terminals[id], k.refusals[id])
		}
	}
	for id := range k.terminals {
		if _, started := k.starts[id]; !started {
			t.Errorf("a terminal frame under id %d, which nobody started", id)
		}
	}
	if said := h.said(); strings.Contains(said, "goroutine") || strings.Contains(said, "panic") {
		t.Errorf("a panic: %s", said)
	}
	testenv.Eventually(t, "the end of everything", func() bool { return alive(tag) != nil })
}

// elsewhere is an id that no start has.
const elsewhere = 1 << 32

// random is the next thing to send.
func (k *talk) random(r *rand.Rand, s *scene, tag string) []byte {
	switch n := r.IntN(100); {
	case n < 25:
		return k.start(r, s, tag)
	case n < 40:
		return frame(k.last, protocol.Cancel{})
	case n < 60:
		return frame(k.last-uint64(r.IntN(2)), protocol.ExecStdin{Data: make([]byte, r.IntN(100_000)), EOF: r.IntN(2) == 0})
	case n < 75:
		return frame(elsewhere+1, protocol.Heartbeat{})
	case n < 82:
		return envelope(elsewhere+2, []string{"cap_call", "exec_exit", "zzz", "exec_out"}[r.IntN(4)], emptyMap)
	case n < 90:
		return envelope(elsewhere+3, []string{"exec_start", "exec_stdin"}[r.IntN(2)], emptyMap)
	case n < 94:
		return frame(elsewhere+4, protocol.Hello{Proto: protocol.ExecVersion})
	case n < 96:
		k.over = true
		return frame(elsewhere+5, protocol.Shutdown{})
	case n < 97:
		k.over = true
		return frame(elsewhere+6, protocol.Hello{Proto: uint64(4 + r.IntN(9))})
	case n < 98:
		k.over = true
		return append(framed([]byte{0xc1}), make([]byte, r.IntN(9))...)
	}
	b := frame(elsewhere+7, protocol.Heartbeat{}) // with a byte that makes it no frame
	b[4] = 0xc1
	k.over = true
	return b
}

// start is an exec_start that runs, runs on, floods, stays, or cannot be.
func (k *talk) start(r *rand.Rand, s *scene, tag string) []byte {
	k.last++
	k.starts[k.last] = !k.over
	b := s.start("/bin/true")
	switch r.IntN(8) {
	case 0:
		b = s.start("/bin/sh", "-c", "trap '' TERM; sleep 0.3; exit 3")
	case 1:
		b = s.start("/bin/cat")
	case 2:
		b = s.start("/bin/sh", "-c", "head -c 300000 /dev/zero; kill -9 $$")
	case 3:
		b = s.start("/bin/sh", "-c", `setsid "$0" @stay "$1" >/dev/null 2>&1 & exit 0`, s.program(), tag)
	case 4:
		b.Argv[0] = "/absent"
	case 5:
		b.Cwd = "/root"
	case 6:
		p := s.policy(nil)
		p.Protected = []string{"/"}
		b.Policy = p.Append(nil)
	}
	return frame(k.last, b)
}

// read counts until the stream ends. Each id is started at most once, so an exit, or
// an error that only a start gets, is its terminal frame.
func (k *talk) read(h *helper) error {
	for {
		f, err := h.reader.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		switch b := f.Body.(type) {
		case protocol.ExecExit:
			k.terminals[f.ID]++
			k.sum["exit"]++
			if b.Degraded || len(b.Enforcement) == 0 {
				return fmt.Errorf("id %d: an exit without enforcement", f.ID)
			}
		case protocol.ErrorBody:
			k.sum["error"]++
			switch b.Code {
			case protocol.CodeBadPolicy, protocol.CodeRefused, protocol.CodeSpawnFailed:
				k.terminals[f.ID]++
			case protocol.CodeBusy, protocol.CodeMalformedFrame:
				k.refusals[f.ID]++
			}
		case protocol.ExecOut:
			if k.terminals[f.ID] > 0 {
				return fmt.Errorf("id %d: output behind the terminal frame", f.ID)
			}
		}
	}
}
