package cli

import (
	"fmt"
	"io"
	"strings"

	"sandboxd/protocol"
)

// options are the parsed flags of run and policy.
type options struct {
	preset          string // presetWorkspace or presetFence
	noGuard         bool
	workspace       string // "" : the current directory
	rw, ro, protect []string
	mounts          []protocol.Mount
	net             protocol.NetMode // "" : the preset's
	limits          protocol.Limits
	env             []string // NAME or NAME=VALUE
	scratch         string   // "" : the preset's
	report          bool
	requireEnforced bool
	acceptSkip      []string
	allowDegraded   bool
	bwrap           string
	cgroupBase      string
	argv            []string
}

// defaultOutput bounds each output stream of a run, in bytes.
const defaultOutput = 1 << 30

func defaults() options {
	return options{preset: presetWorkspace, limits: protocol.Limits{OutputBytes: defaultOutput}}
}

// flag is one entry of the flag table. arg is "" for a switch.
type flag struct {
	name, arg, help string
	set             func(o *options, value string) error
}

func flagTable() []flag {
	return []flag{
		{"preset", "workspace|fence", "the strict jail (default), or only writes bounded", setPreset},
		{"no-guard", "", "leave git's configuration and hooks, and the like, writable", toggle(func(o *options) *bool { return &o.noGuard })},
		{"workspace", "DIR", "the directory the command may write (default: the current one)", text(func(o *options) *string { return &o.workspace })},
		{"rw", "PATH", "writable too (repeatable)", list(func(o *options) *[]string { return &o.rw })},
		{"ro", "PATH", "readable too (repeatable)", list(func(o *options) *[]string { return &o.ro })},
		{"protect", "PATH", "hidden and not replaceable (repeatable)", list(func(o *options) *[]string { return &o.protect })},
		{"mount", "PATH[:ro|rw]", "one file, directory, socket or device at its own path (repeatable)", setMount},
		{"net", "off|full", "network (default: off; fence: full)", setNet},
		{"mem", "SIZE", "memory of the whole run", size(func(o *options) *uint64 { return &o.limits.MemBytes })},
		{"pids", "N", "tasks of the whole run", number(func(o *options) *uint64 { return &o.limits.Pids })},
		{"wall", "TIME", "wall clock time", seconds(func(o *options) *uint64 { return &o.limits.WallSeconds })},
		{"cpu", "TIME", "CPU time of each process", seconds(func(o *options) *uint64 { return &o.limits.CPUSeconds })},
		{"fsize", "SIZE", "size of each file written", size(func(o *options) *uint64 { return &o.limits.FsizeBytes })},
		{"output", "SIZE", "bytes of each output stream (default: 1G)", size(func(o *options) *uint64 { return &o.limits.OutputBytes })},
		{"env", "NAME[=VALUE]", "pass a variable on, or set it (repeatable)", setEnv},
		{"scratch", "tmpfs|PATH", "private scratch, or a host directory (default: tmpfs at /tmp; fence: /tmp)", text(func(o *options) *string { return &o.scratch })},
		{"report", "", "print what was enforced on stderr afterwards", toggle(func(o *options) *bool { return &o.report })},
		{"require-enforced", "", "refuse to run unless everything is enforced", toggle(func(o *options) *bool { return &o.requireEnforced })},
		{"accept-skip", "TAG", "a layer that may be missing all the same (repeatable)", list(func(o *options) *[]string { return &o.acceptSkip })},
		{"allow-degraded", "", "run although this host has no jail", toggle(func(o *options) *bool { return &o.allowDegraded })},
		{"bwrap", "PATH", "the bubblewrap to use", text(func(o *options) *string { return &o.bwrap })},
		{"cgroup-base", "DIR", "the cgroup v2 directory for ceilings", text(func(o *options) *string { return &o.cgroupBase })},
	}
}

// parseRun parses the arguments of run: flags, then the command, best after "--".
func parseRun(args []string) (options, error) {
	o := defaults()
	args, err := parseFlags(&o, args)
	if err != nil {
		return options{}, err
	}
	if len(args) == 0 {
		return options{}, fmt.Errorf("no command; type `sandboxd run [flags] -- CMD [ARG...]`")
	}
	o.argv = args
	return o, nil
}

// parseFlags takes the flags in front, and a "--" behind them, and gives the rest.
func parseFlags(o *options, args []string) ([]string, error) {
	for len(args) > 0 {
		arg := args[0]
		if arg == "--" {
			return args[1:], nil
		}
		if !strings.HasPrefix(arg, "-") || arg == "-" {
			break
		}
		rest, err := parseFlag(o, arg, args[1:])
		if err != nil {
			return nil, err
		}
		args = rest
	}
	return args, nil
}

func parseFlag(o *options, arg string, rest []string) ([]string, error) {
	name, value, inline := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
	for _, f := range flagTable() {
		if f.name != name {
			continue
		}
		switch {
		case f.arg == "" && inline:
			return nil, fmt.Errorf("--%s takes no value", name)
		case f.arg != "" && !inline && len(rest) == 0:
			return nil, fmt.Errorf("--%s needs a value: --%s %s", name, name, f.arg)
		case f.arg != "" && !inline:
			value, rest = rest[0], rest[1:]
		}
		if err := f.set(o, value); err != nil {
			return nil, fmt.Errorf("--%s %s: %w", name, value, err)
		}
		return rest, nil
	}
	return nil, fmt.Errorf("unknown flag %s; `sandboxd --help` lists the flags (a command's own come after --)", arg)
}

func printFlags(w io.Writer) {
	for _, f := range flagTable() {
		fmt.Fprintf(w, "  %-24s %s\n", strings.TrimSpace("--"+f.name+" "+f.arg), f.help)
	}
}
