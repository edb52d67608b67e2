package selftest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"sandboxd/protocol"
	"sandboxd/protocol/broker"
)

// runBound is the time that one run may take. Reached, it is a failure and no skip.
const runBound = 2 * time.Minute

// lane is one helper and what its probes need. Probes of one lane run one after
// another; several lanes run side by side.
type lane struct {
	h        *broker.Helper
	shared   *shared
	baseline []string // enforcement of a run in which everything worked
	n        int
}

// site makes the fixture of one run.
func (l *lane) site(name string) (*site, error) {
	l.n++
	return newSite(filepath.Join(l.shared.base, fmt.Sprintf("%s-%s-%d", name, token()[:6], l.n)), l.shared.bin)
}

// output keeps what a payload says, up to a bound, and can be waited on.
type output struct {
	mu    sync.Mutex
	b     bytes.Buffer
	total int
	say   chan struct{}
}

const keepOutput = 4 << 20 // bytes

func newOutput() *output { return &output{say: make(chan struct{}, 1)} }

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	o.total += len(p)
	if room := keepOutput - o.b.Len(); room > 0 {
		o.b.Write(p[:min(len(p), room)])
	}
	o.mu.Unlock()
	select {
	case o.say <- struct{}{}:
	default:
	}
	return len(p), nil
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// wait blocks until the output holds text.
func (o *output) wait(ctx context.Context, text string) error {
	for !strings.Contains(o.String(), text) {
		select {
		case <-o.say:
		case <-ctx.Done():
			return fmt.Errorf("the payload did not say %q", text)
		}
	}
	return nil
}

// jailed runs argv under a policy. during, if any, is called while it runs.
func (l *lane) jailed(ctx context.Context, s *site, p protocol.Policy, argv []string, during func(*broker.Execution, *output) error) outcome {
	ctx, cancel := context.WithTimeout(ctx, runBound)
	defer cancel()
	out := newOutput()
	e, err := l.h.Start(ctx, broker.Command{
		Argv: argv, Cwd: s.work(), Policy: &p, Stdout: out, Stderr: out,
		Env: map[string]string{"PATH": "/usr/bin:/bin", "HOME": s.work(), "LANG": "C.UTF-8", baitName: l.shared.bait},
	})
	if err != nil {
		return outcome{err: err}
	}
	if during != nil {
		if err = during(e, out); err != nil {
			e.Cancel()
		}
	}
	res, waitErr := e.Wait()
	o := parse(out.String(), s.nonce)
	o.exit, o.effect, o.err = res.ExecExit, s.done(), errors.Join(err, waitErr)
	return o
}

// unjailed runs argv as a plain child: the control of what only the jail denies.
func (l *lane) unjailed(ctx context.Context, s *site, argv []string, during func(*exec.Cmd, *output) error) outcome {
	ctx, cancel := context.WithTimeout(ctx, runBound)
	defer cancel()
	out := newOutput()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.work(), out, out
	l.shared.tie(cmd, baitName+"="+l.shared.bait, "HOME="+s.work())
	cmd.WaitDelay = time.Second // a grandchild that holds the pipe is some probes' point
	if err := cmd.Start(); err != nil {
		return outcome{err: err}
	}
	var err error
	if during != nil {
		if err = during(cmd, out); err != nil {
			cmd.Process.Kill()
		}
	}
	cmd.Wait() // its exit status means nothing here
	o := parse(out.String(), s.nonce)
	o.effect, o.err = s.done(), errors.Join(err, ctx.Err())
	o.exit.Code = cmd.ProcessState.ExitCode()
	return o
}

// settle runs the smallest command, whose end joins the clean-up of the one before.
func (l *lane) settle(ctx context.Context, s *site) error {
	_, err := l.h.Exec(ctx, broker.Command{Argv: []string{s.probe(), "--version"}, Cwd: s.work(), Policy: ref(s.policy())})
	return err
}

func ref[T any](v T) *T { return &v }
