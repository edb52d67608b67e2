package selftest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"time"

	"sandboxd/internal/selftest/witness"
	"sandboxd/protocol"
	"sandboxd/protocol/broker"
)

func processProbes() []Probe {
	return []Probe{
		{Name: "init", Means: "taking hold of the jail's init: its memory, its descriptors, its death", Linux: true,
			Layers: []string{protocol.TagLandlock, protocol.TagSeccompHardening}, Also: protocol.TagBwrap, run: initAttack().probe},
		{Name: "kernel-interfaces", Means: "keyrings, bpf and userfaultfd", Linux: true,
			Layers: []string{protocol.TagSeccompHardening}, run: kernelInterfaces().probe},
		{Name: "setsid", Means: "a grandchild with a session of its own that holds standard output", run: leftBehind},
		{Name: "term-handled", Means: "TERM reaches a payload that handles it", run: termHandled},
		{Name: "term-ignored", Means: "a payload that ignores TERM", Slow: true, run: termIgnored},
	}
}

// initAttack: a payload that got hold of init could disarm the parent-death signal and
// outlive the helper. The control does it to a child of its own.
func initAttack() denial {
	return denial{
		role: "attack", must: []string{"mem"}, may: []string{"getfd", "ptrace"}, unjailed: true,
		args:        func(*lane, *site) []string { return []string{"1"} },
		controlArgs: func(*lane, *site) []string { return []string{"child"} },
	}
}

func kernelInterfaces() denial {
	return denial{
		role: "interfaces", must: []string{"add_key"}, may: []string{"keyctl", "bpf", "userfaultfd"}, unjailed: true,
		args: func(*lane, *site) []string { return nil },
	}
}

// staying makes the command line of a role that takes a lock and says when it has it.
func staying(s *site, role string) []string {
	return []string{s.probe(), witness.Prefix + role, s.nonce, s.effect(), s.path("work/lock"), s.path("work/ready")}
}

// gone waits, within a bound, until nobody holds the lock.
func gone(s *site, bound time.Duration) bool {
	for end := time.Now().Add(bound); ; time.Sleep(10 * time.Millisecond) {
		if free(s.path("work/lock")) {
			return true
		}
		if time.Now().After(end) {
			return false
		}
	}
}

// lives says whether the process of the control still holds the lock.
func lives(s *site) bool { return !free(s.path("work/lock")) }

// endReady kills the process that wrote its id into the site's ready file: a
// control's, so that nothing of the self-test outlives it.
func endReady(s *site) {
	b, _ := os.ReadFile(s.path("work/ready"))
	if pid, err := strconv.Atoi(string(b)); err == nil && lives(s) {
		if p, err := os.FindProcess(pid); err == nil {
			p.Kill()
		}
		gone(s, runBound)
	}
}

// pair is the two sites of a probe: the control's and the jail's.
func pair(l *lane, p Probe) (control, jail *site, err error) {
	if control, err = l.site(p.Name); err == nil {
		jail, err = l.site(p.Name)
	}
	return control, jail, err
}

func leftBehind(ctx context.Context, l *lane, p Probe) Finding {
	c, s, err := pair(l, p)
	if err != nil {
		return untried(err.Error())
	}
	defer endReady(c)
	control := l.unjailed(ctx, c, staying(c, "setsid"), nil)
	if why := control.ran(false); why != "" || !control.is("setsid", witness.OK) {
		return skipped("the control: no grandchild came about: "+why+control.answers["setsid"].detail, unproven)
	}
	if !lives(c) {
		return skipped("the control: the grandchild ended by itself", unproven)
	}
	o := l.jailed(ctx, s, s.policy(), staying(s, "setsid"), nil)
	if why := o.ran(false); why != "" || !o.is("setsid", witness.OK) {
		return failed("in the jail: no grandchild came about: " + why + o.answers["setsid"].detail)
	}
	if err := l.settle(ctx, s); err != nil {
		return failed(fmt.Sprintf("the command after it could not run: %v", err))
	}
	if !gone(s, 5*time.Second) {
		return failed("the grandchild lives on after the execution's end")
	}
	return enforced("")
}

func termHandled(ctx context.Context, l *lane, p Probe) Finding {
	c, s, err := pair(l, p)
	if err != nil {
		return untried(err.Error())
	}
	control := l.unjailed(ctx, c, staying(c, "trap"), func(cmd *exec.Cmd, out *output) error {
		return say(ctx, out, "ready ", func() error { return terminate(cmd.Process) })
	})
	if why := control.ran(false); why != "" || control.exit.Code != 7 {
		return skipped(fmt.Sprintf("the control: the handler did not run: %s, exit code %d", why, control.exit.Code), unproven)
	}
	o := l.jailed(ctx, s, s.policy(), staying(s, "trap"), func(e *broker.Execution, out *output) error {
		return say(ctx, out, "ready ", func() error { e.Cancel(); return nil })
	})
	switch why := o.ran(false); {
	case why != "":
		return failed("in the jail: " + why)
	case !o.is("trapped", witness.OK) || o.exit.Code != 7:
		return failed(fmt.Sprintf("the handler did not run to its end: exit code %d", o.exit.Code))
	case !o.exit.Cancelled:
		return failed("the exit does not say cancelled")
	}
	return enforced("")
}

func termIgnored(ctx context.Context, l *lane, p Probe) Finding {
	c, s, err := pair(l, p)
	if err != nil {
		return untried(err.Error())
	}
	defer endReady(c)
	survived := false
	l.unjailed(ctx, c, staying(c, "ignore"), func(cmd *exec.Cmd, out *output) error {
		defer cmd.Process.Kill()
		return say(ctx, out, "ready ", func() error {
			if err := terminate(cmd.Process); err != nil {
				return err
			}
			return say(ctx, out, "ignored ", func() error { survived = lives(c); return nil })
		})
	})
	if !survived {
		return skipped("the control: the payload does not survive TERM", unproven)
	}
	o := l.jailed(ctx, s, s.policy(), staying(s, "ignore"), func(e *broker.Execution, out *output) error {
		return say(ctx, out, "ready ", func() error { e.Cancel(); return nil })
	})
	switch why := o.ran(true); {
	case why != "":
		return failed("in the jail: " + why)
	case !o.is("ignored", witness.OK):
		return failed("the payload was not told by TERM before it was killed")
	case !o.exit.Cancelled:
		return failed("the exit does not say cancelled")
	case !gone(s, 5*time.Second):
		return failed("the payload lives on after the execution's end")
	}
	return enforced("")
}

// say waits for a word of the payload and then does something.
func say(ctx context.Context, out *output, word string, then func() error) error {
	ctx, cancel := context.WithTimeout(ctx, runBound)
	defer cancel()
	if err := out.wait(ctx, word); err != nil {
		return err
	}
	return then()
}
