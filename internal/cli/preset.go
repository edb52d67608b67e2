package cli

import (
	"maps"
	"slices"
	"strings"

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

// workspacePolicy is the preset "workspace": the workspace writable, the minimal base
// view readable, the network off, a private scratch.
func workspacePolicy(o options, workspace, cwd string) protocol.Policy {
	mounts := slices.Clone(o.mounts)
	for i := range mounts {
		mounts[i].Path = absolute(cwd, mounts[i].Path)
	}
	scratch := o.scratch
	if scratch != protocol.ScratchTmpfs {
		scratch = absolute(cwd, scratch)
	}
	return protocol.Policy{
		WritableRoots: append([]string{workspace}, absolutes(cwd, o.rw)...),
		ReadableRoots: absolutes(cwd, o.ro),
		Protected:     absolutes(cwd, o.protect),
		Mounts:        mounts,
		Network:       protocol.Network{Mode: o.net},
		Limits:        o.limits,
		EnvAllow:      envAllow(o),
		Scratch:       scratch,
	}
}

func envAllow(o options) []string {
	names := slices.Concat(passed, made, identityNames)
	for _, e := range o.env {
		name, _, _ := strings.Cut(e, "=")
		names = append(names, name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// environment is what the preset asks the helper to give the command. HOME is the
// scratch, so that a tool's caches and settings land there and not in the user's.
func environment(o options, environ []string, scratch string, identity map[string]string) map[string]string {
	env := map[string]string{}
	copyEnv(env, environ, passed)
	maps.Copy(env, identity)
	copyEnv(env, environ, identityNames)
	env["HOME"] = scratch
	if scratch == protocol.ScratchTmpfs {
		env["HOME"] = "/tmp"
	}
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
