package cli

import (
	"maps"
	"slices"
	"strings"

	"sandboxd/internal/fence"
	"sandboxd/protocol"
)

// passed are the variables that the workspace preset hands on where they are set.
// None of them makes a program load code.
var passed = []string{
	"PATH", "LANG", "TERM", "TZ", "USER", "LOGNAME", "SHELL",
	"LC_ALL", "LC_ADDRESS", "LC_COLLATE", "LC_CTYPE", "LC_IDENTIFICATION", "LC_MEASUREMENT", "LC_MESSAGES",
	"LC_MONETARY", "LC_NAME", "LC_NUMERIC", "LC_PAPER", "LC_TELEPHONE", "LC_TIME",
}

// made are the variables that the preset or the helper sets.
var made = []string{"HOME", "TMPDIR", "SANDBOXD_SCRATCH_DIR"}

// identityNames carry the user's git name and email.
var identityNames = []string{"GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"}

// The presets.
const (
	presetWorkspace = "workspace"
	presetFence     = "fence"
)

// preset is a policy with what belongs to it.
type preset struct {
	policy protocol.Policy
	env    map[string]string // what the preset sets for the command
	notes  []string
	git    string // the program, "" for none
	// changes says what the command did that no mount could keep it from.
	changes func() []string
}

// build makes the policy of the preset and the flags. The error is a workspace that
// cannot be guarded.
func build(o options, workspace, cwd string, environ []string) (preset, error) {
	mounts := slices.Clone(o.mounts)
	write := absolutes(cwd, o.rw)
	open, mounted := slices.Clone(write), []string(nil)
	for i := range mounts {
		mounts[i].Path = absolute(cwd, mounts[i].Path)
		mounted = append(mounted, mounts[i].Path)
		if mounts[i].Access == protocol.ReadWrite {
			write = append(write, mounts[i].Path)
		}
	}
	in := fence.Input{
		Workspace: workspace, Guard: !o.noGuard, Offline: o.net != protocol.NetFull,
		Open: append(open, mounted...), Write: write, Mounted: mounted, Hidden: absolutes(cwd, o.protect), Scratch: o.scratch,
		Env: func(name string) (string, bool) { return lookupEnv(environ, name) },
	}
	if in.Scratch != "" && in.Scratch != protocol.ScratchTmpfs {
		in.Scratch = absolute(cwd, in.Scratch)
	}
	choose := fence.Workspace
	if o.preset == presetFence {
		choose = fence.Fence
	}
	r, err := choose(in)
	if err != nil {
		return preset{}, err
	}
	p := r.Policy
	p.WritableRoots = append(p.WritableRoots, absolutes(cwd, o.rw)...)
	p.ReadableRoots = append(p.ReadableRoots, absolutes(cwd, o.ro)...)
	p.Protected = append(p.Protected, absolutes(cwd, o.protect)...)
	p.Mounts = append(p.Mounts, mounts...)
	if o.net != "" {
		p.Network.Mode = o.net
	}
	p.Limits = o.limits
	p.EnvAllow = envAllow(o)
	return preset{p, r.Env, r.Notes, r.Git, r.Changes}, nil
}

func envAllow(o options) []string {
	names := slices.Concat(passed, made, identityNames, fence.Variables(), []string{"GOPROXY"})
	for _, e := range o.env {
		name, _, _ := strings.Cut(e, "=")
		names = append(names, name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// environment is what the preset asks the helper to give the command. In the strict
// jail HOME is the scratch, so that a tool's caches and settings land there and not
// in the user's.
func environment(o options, environ []string, p preset, identity map[string]string) map[string]string {
	env := map[string]string{}
	copyEnv(env, environ, passed)
	maps.Copy(env, identity)
	copyEnv(env, environ, identityNames)
	if o.preset == presetFence {
		copyEnv(env, environ, append([]string{"HOME", "TMPDIR"}, fence.Variables()...))
	} else {
		env["HOME"] = p.policy.Scratch
		if p.policy.Scratch == protocol.ScratchTmpfs {
			env["HOME"] = fence.ScratchDir
		}
	}
	maps.Copy(env, p.env)
	for _, e := range o.env {
		if name, value, ok := strings.Cut(e, "="); ok {
			env[name] = value
		} else {
			copyEnv(env, environ, []string{name})
		}
	}
	return env
}

func copyEnv(to map[string]string, environ, names []string) {
	for _, name := range names {
		if v, ok := lookupEnv(environ, name); ok {
			to[name] = v
		}
	}
}

func lookupEnv(environ []string, name string) (string, bool) {
	for _, e := range environ {
		if v, ok := strings.CutPrefix(e, name+"="); ok {
			return v, true
		}
	}
	return "", false
}

func getenv(environ []string, name string) string {
	v, _ := lookupEnv(environ, name)
	return v
}
