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

// presetEnv are the names that a preset lets through.
func presetEnv() []string {
	return withNames(nil, slices.Concat(passed, made, identityNames, fence.Variables(), []string{"GOPROXY"}))
}

// withNames adds the names of NAME and NAME=VALUE, sorted and each once.
func withNames(names, more []string) []string {
	names = slices.Clone(names)
	for _, e := range more {
		name, _, _ := strings.Cut(e, "=")
		names = append(names, name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// environment is what the helper is asked to give the command. In the strict jail
// HOME is the scratch, so that a tool's caches and settings land there and not in
// the user's. A policy of the user's own says itself what comes through.
func (t task) environment(environ []string, identity map[string]string) map[string]string {
	env := map[string]string{}
	if t.o.policyFile != "" {
		maps.Copy(env, identity)
		copyEnv(env, environ, t.policy.EnvAllow)
	} else {
		t.presetEnvironment(env, environ, identity)
	}
	for _, e := range t.o.env {
		if name, value, ok := strings.Cut(e, "="); ok {
			env[name] = value
		} else {
			copyEnv(env, environ, []string{name})
		}
	}
	return env
}

func (t task) presetEnvironment(env map[string]string, environ []string, identity map[string]string) {
	copyEnv(env, environ, passed)
	maps.Copy(env, identity)
	copyEnv(env, environ, identityNames)
	if t.o.preset == presetFence {
		copyEnv(env, environ, append([]string{"HOME", "TMPDIR"}, fence.Variables()...))
	} else {
		env["HOME"] = t.policy.Scratch
		if t.policy.Scratch == protocol.ScratchTmpfs {
			env["HOME"] = fence.ScratchDir
		}
	}
	maps.Copy(env, t.env)
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
