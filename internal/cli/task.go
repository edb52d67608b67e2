package cli

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"sandboxd/internal/fence"
	"sandboxd/internal/policy"
	"sandboxd/protocol"
)

// task is what flags come to: a policy, where each entry of it comes from, and where
// the command is to start.
type task struct {
	o              options
	workspace, cwd string
	policy         protocol.Policy
	env            map[string]string // what the preset sets for the command
	notes          []string          // what the preset left out
	git            string            // the program that may be asked, "" for none
	own            []string          // the configuration files of the workspace's repository
	// changes says what the command did that no mount could keep it from; it may be nil.
	changes func() []string
	sources sources
}

// newTask builds the policy. Its error is an ordinary refusal (125).
func newTask(o options, s System) (task, error) {
	workspace, cwd, err := place(o, s)
	if err != nil {
		return task{}, err
	}
	t := task{o: o, workspace: workspace, cwd: cwd, sources: sources{}}
	if o.policyFile != "" {
		err = t.fromFile()
	} else {
		err = t.fromPreset(s)
	}
	if err != nil {
		return task{}, err
	}
	t.addFlags()
	if err := policy.Validate(t.policy); err != nil {
		var rule *policy.Error
		if errors.As(err, &rule) {
			err = t.attribute(err, rule.Path)
		}
		return task{}, fmt.Errorf("cannot use this policy: %w", err)
	}
	t.policy = policy.Normalise(t.policy)
	for _, path := range absolutes(t.cwd, o.ro) {
		// A policy may name what is not there; somebody who types it hardly means that.
		if _, err := os.Lstat(path); errors.Is(err, os.ErrNotExist) {
			t.notes = append(t.notes, fmt.Sprintf("--ro %s: there is nothing of that name, so it grants nothing", path))
		}
	}
	return t, nil
}

func (t *task) fromFile() error {
	path := t.o.policyFile
	p, places, err := readPolicy(path)
	if err != nil {
		return err
	}
	from := sources{}
	for list, n := range lists(p) {
		for i := range n {
			key := entryKey{list, i}
			from[key] = fileSource(path, places[fmt.Sprintf("%s[%d]", list, i)], key)
		}
	}
	for _, key := range t.o.amended {
		p.Mounts[key.index].Access = protocol.ReadWrite
	}
	kept := []string{}
	for i, one := range p.Protected {
		if slices.Contains(t.o.dropped, entryKey{"protected", i}) {
			continue
		}
		from[entryKey{"protected", len(kept)}] = from[entryKey{"protected", i}]
		kept = append(kept, one)
	}
	p.Protected = kept
	t.policy, t.sources = p, from
	t.sources[entryKey{"scratch", -1}] = fileSource(path, places["scratch"], entryKey{"scratch", -1})
	if t.o.given["workspace"] {
		t.add("writable_roots", source{flag: "--workspace"}, t.workspace)
	}
	return nil
}

// fromPreset makes the preset's policy. The error is a workspace that cannot be
// guarded.
func (t *task) fromPreset(s System) error {
	environ, self := s.Environ, ""
	if s.Executable != nil {
		self, _ = s.Executable() // without it run itself fails
	}
	o := t.o
	write := absolutes(t.cwd, o.rw)
	open, mounted := slices.Clone(write), []string(nil)
	for _, m := range o.mounts {
		path := absolute(t.cwd, m.Path)
		mounted = append(mounted, path)
		if m.Access == protocol.ReadWrite {
			write = append(write, path)
		}
	}
	in := fence.Input{
		Workspace: t.workspace, Guard: !o.noGuard, Offline: o.net != protocol.NetFull,
		Open: append(open, mounted...), Write: write, Mounted: mounted, Hidden: absolutes(t.cwd, o.protect), Scratch: t.scratch(), Self: self,
		Env: func(name string) (string, bool) { return lookupEnv(environ, name) },
	}
	choose := fence.Workspace
	if o.preset == presetFence {
		choose = fence.Fence
	}
	r, err := choose(in)
	if err != nil {
		return err
	}
	t.policy, t.env, t.notes, t.git, t.own, t.changes = r.Policy, r.Env, r.Notes, r.Git, r.Own, r.Changes
	t.policy.Limits = protocol.Limits{OutputBytes: defaultOutput}
	t.policy.EnvAllow = presetEnv()
	t.nameSources(r)
	return nil
}

// addFlags adds what was given by name, to a preset and to a file alike.
func (t *task) addFlags() {
	o, p := t.o, &t.policy
	t.add("writable_roots", source{flag: "--rw"}, absolutes(t.cwd, o.rw)...)
	t.add("readable_roots", source{flag: "--ro"}, absolutes(t.cwd, o.ro)...)
	t.add("protected", source{flag: "--protect"}, absolutes(t.cwd, o.protect)...)
	for _, m := range o.mounts {
		m.Path = absolute(t.cwd, m.Path)
		t.sources[entryKey{"mounts", len(p.Mounts)}] = source{flag: "--mount", text: "--mount"}
		p.Mounts = append(p.Mounts, m)
	}
	if o.net != "" {
		p.Network = protocol.Network{Mode: o.net}
	}
	if o.scratch != "" {
		p.Scratch = t.scratch()
		t.sources[entryKey{"scratch", -1}] = source{flag: "--scratch", text: "--scratch"}
	}
	given := limitsByFlag(&o.limits)
	for name, at := range limitsByFlag(&p.Limits) {
		if o.given[name] {
			*at = *given[name]
		}
	}
	p.EnvAllow = withNames(p.EnvAllow, o.env)
}

func limitsByFlag(l *protocol.Limits) map[string]*uint64 {
	return map[string]*uint64{
		"mem": &l.MemBytes, "pids": &l.Pids, "wall": &l.WallSeconds,
		"cpu": &l.CPUSeconds, "fsize": &l.FsizeBytes, "output": &l.OutputBytes,
	}
}

func (t *task) add(list string, src source, paths ...string) {
	to := map[string]*[]string{
		"writable_roots": &t.policy.WritableRoots, "readable_roots": &t.policy.ReadableRoots, "protected": &t.policy.Protected,
	}[list]
	src.text = src.flag
	for _, path := range paths {
		t.sources[entryKey{list, len(*to)}] = src
		*to = append(*to, path)
	}
}

// scratch is the flag's, as the policy spells it.
func (t *task) scratch() string {
	if t.o.scratch == "" || t.o.scratch == protocol.ScratchTmpfs {
		return t.o.scratch
	}
	return absolute(t.cwd, t.o.scratch)
}
