package jail

import (
	"os"

	"sandboxd/internal/bwrap"
	"sandboxd/internal/landlock"
	"sandboxd/internal/roots"
	"sandboxd/internal/stage2/spec"
	"sandboxd/protocol"
)

// render makes the placeholders, then bubblewrap's arguments.
func (j *job) render() error {
	if j.standby && len(j.plan.Placeholders()) > 0 {
		return errNoStandby
	}
	var err error
	if j.places, err = roots.Place(j.plan.Ops, j.reached); err != nil {
		return err
	}
	cmd, err := bwrap.Render(j.plan, bwrap.Options{
		FirstFD: spec.FirstFD + 1, Flags: j.facts.Bwrap.Flags,
		NetFull:      j.req.Policy.Network.Mode == protocol.NetFull,
		NestedUserns: j.host.AllowNestedUserns,
	})
	if err != nil {
		return err
	}
	j.bwrap = &cmd
	j.spec.Jailed = true
	j.spec.NoCaps, j.spec.NoUserns = cmd.Dropped.Caps, cmd.Dropped.Userns
	if j.spec.View, err = j.host.mounts.view(cmd.Mounts); err != nil {
		return err
	}
	for _, ns := range j.host.namespaces {
		if ns.Name != "net" || j.req.Policy.Network.Mode != protocol.NetFull {
			j.spec.Namespaces = append(j.spec.Namespaces, ns)
		}
	}
	return nil
}

// checks is what stage 2 looks at from inside: roots and mounts, and what only a
// jail can hide or pin. A placeholder's inode is known only now.
func (j *job) checks() []spec.Check {
	var out []spec.Check
	for _, c := range j.plan.Checks() {
		switch c.What {
		case spec.CheckRoot, spec.CheckMount:
		case spec.CheckPlaceholder:
			c.ID, _ = j.places.ID(c.Path)
			fallthrough
		default:
			if !j.spec.Jailed {
				continue
			}
		}
		out = append(out, c)
	}
	return out
}

// restrict says what stage 2 stacks inside.
func (j *job) restrict() {
	p := j.req.Policy
	j.spec.Landlock = landlock.Rules(j.plan, landlock.Options{
		ABI: j.facts.LandlockABI, Reason: j.facts.LandlockReason, Jailed: j.jailed(),
		DenyNet: p.Network.Mode != protocol.NetFull, NestedUserns: j.host.AllowNestedUserns,
		Needs: j.needs(),
	})
	j.spec.Seccomp = spec.Seccomp{
		DenyNet:   p.Network.Mode != protocol.NetFull,
		DenyTrace: j.facts.LandlockABI == 0,
	}
}

// needs is what a command without a jail must be able to read besides the policy's
// roots: its own program, where the request names it by path.
func (j *job) needs() []string {
	var out []string
	for _, path := range j.program() {
		out = append(out, j.facts.Layout.Resolve(path).Path)
	}
	return out
}

// inherit opens what bubblewrap's descriptors stand for, in their order; null is the
// content of an empty mask.
func (j *job) inherit(null *os.File) ([]*os.File, error) {
	args, err := memfd("bwrap-args", nulTerminated(j.bwrap.Args))
	if err != nil {
		return nil, err
	}
	files := []*os.File{args}
	for _, in := range j.bwrap.Inherit {
		var f *os.File
		switch {
		case in.Kind != bwrap.Data:
			f, err = j.reached.Dup(in.Path)
		case in.Content == "":
			f = null
		default:
			f, err = memfd("mask", []byte(in.Content))
		}
		if err != nil {
			return files, err
		}
		files = append(files, f)
	}
	return files, nil
}

func nulTerminated(args []string) []byte {
	var b []byte
	for _, a := range args {
		b = append(append(b, a...), 0)
	}
	return b
}
