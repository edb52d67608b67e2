package cli

import (
	"fmt"
	"slices"
	"strings"

	"sandboxd/protocol"
)

// options are the parsed flags.
type options struct {
	given           map[string]bool // names of the flags that were there
	preset          string          // presetWorkspace or presetFence
	policyFile      string          // "": the preset's policy
	noGuard         bool
	workspace       string // "" : the current directory
	rw, ro, protect []string
	mounts          []protocol.Mount
	net             protocol.NetMode // "" : the preset's
	limits          protocol.Limits
	env             []string // NAME or NAME=VALUE
	scratch         string   // "" : the preset's
	json            bool
	report          bool
	requireEnforced bool
	acceptSkip      []string
	allowDegraded   bool
	bwrap           string
	cgroupBase      string
	showArgv        bool
	format          string
	argv            []string // the command, or the paths to explain

	dropped, amended []entryKey // what explain tries out: entries of the file to leave out, mounts to make read-write
}

// defaultOutput bounds each output stream of a run, in bytes.
const defaultOutput = 1 << 30

func defaults() options {
	return options{given: map[string]bool{}, preset: presetWorkspace, format: "json", limits: protocol.Limits{OutputBytes: defaultOutput}}
}

// use says which commands take a flag.
type use uint8

const (
	forRun use = 1 << iota
	forExplain
	forPolicy
	forDoctor

	forAPolicy = forRun | forExplain | forPolicy
)

// flag is one entry of the flag table. arg is "" for a switch; words separated by
// "|" are its values, a name in capitals says what kind of value it takes.
type flag struct {
	name, arg, help string
	use             use
	set             setter
}

func flagTable() []flag {
	return []flag{
		{"preset", "workspace|fence", "the strict jail (default), or only writes bounded", forAPolicy, setPreset},
		{"policy", "FILE", "a policy of your own in place of a preset: JSON with comments, or msgpack", forAPolicy, text(func(o *options) *string { return &o.policyFile })},
		{"no-guard", "", "leave git's configuration and hooks, and the like, writable", forAPolicy, toggle(func(o *options) *bool { return &o.noGuard })},
		{"workspace", "DIR", "the directory the command may write and starts in (default: the current one)", forAPolicy, text(func(o *options) *string { return &o.workspace })},
		{"rw", "PATH", "writable too (repeatable)", forAPolicy, list(func(o *options) *[]string { return &o.rw })},
		{"ro", "PATH", "readable too (repeatable)", forAPolicy, list(func(o *options) *[]string { return &o.ro })},
		{"protect", "PATH", "hidden and not replaceable (repeatable)", forAPolicy, list(func(o *options) *[]string { return &o.protect })},
		{"mount", "PATH[:ro|rw]", "one file, directory, socket or device at its own path (repeatable)", forAPolicy, setMount},
		{"net", "off|full", "network (default: off; fence: full)", forAPolicy, setNet},
		{"mem", "SIZE", "memory of the whole run", forAPolicy, size(func(o *options) *uint64 { return &o.limits.MemBytes })},
		{"pids", "N", "tasks of the whole run", forAPolicy, number(func(o *options) *uint64 { return &o.limits.Pids })},
		{"wall", "TIME", "wall clock time, in whole seconds", forAPolicy, seconds(func(o *options) *uint64 { return &o.limits.WallSeconds })},
		{"cpu", "TIME", "CPU time of each process, in whole seconds", forAPolicy, seconds(func(o *options) *uint64 { return &o.limits.CPUSeconds })},
		{"fsize", "SIZE", "size of each file written", forAPolicy, size(func(o *options) *uint64 { return &o.limits.FsizeBytes })},
		{"output", "SIZE", "bytes of each output stream (default: 1G)", forAPolicy, size(func(o *options) *uint64 { return &o.limits.OutputBytes })},
		{"env", "NAME[=VALUE]", "pass a variable on, or set it (repeatable)", forAPolicy, setEnv},
		{"scratch", "tmpfs|PATH", "private scratch, or a host directory (default: tmpfs at /tmp; fence: /tmp)", forAPolicy, text(func(o *options) *string { return &o.scratch })},
		{"format", "json|msgpack", "how the policy is printed (default: json)", forPolicy, setFormat},
		{"report", "", "print what was enforced on stderr afterwards", forRun, toggle(func(o *options) *bool { return &o.report })},
		{"json", "", "print one JSON object: of run one for each event", forRun | forExplain | forDoctor, toggle(func(o *options) *bool { return &o.json })},
		{"argv", "", "print bubblewrap's arguments, or the Seatbelt profile", forExplain, toggle(func(o *options) *bool { return &o.showArgv })},
		{"require-enforced", "", "refuse to run unless everything is enforced", forRun, toggle(func(o *options) *bool { return &o.requireEnforced })},
		{"accept-skip", "TAG", "a layer that may be missing all the same (repeatable)", forRun, setAcceptSkip},
		{"allow-degraded", "", "run although this host has no jail", forRun, toggle(func(o *options) *bool { return &o.allowDegraded })},
		{"bwrap", "PATH", "the bubblewrap to use", forRun | forExplain | forDoctor, text(func(o *options) *string { return &o.bwrap })},
		{"cgroup-base", "DIR", "the cgroup v2 directory for ceilings", forRun | forDoctor, text(func(o *options) *string { return &o.cgroupBase })},
	}
}

// flagsOf are the flags that a command takes.
func flagsOf(u use) []flag {
	var out []flag
	for _, f := range flagTable() {
		if f.use&u != 0 {
			out = append(out, f)
		}
	}
	return out
}

// contradiction is what no single flag can see.
func (o options) contradiction() error {
	for _, name := range []string{"preset", "no-guard"} {
		if o.policyFile != "" && o.given[name] {
			return fmt.Errorf("--policy and --%s do not go together: the file takes the preset's place, and holds what it says", name)
		}
	}
	if o.given["argv"] && len(o.argv) > 0 {
		return fmt.Errorf("--argv takes no PATH, found %q", o.argv[0])
	}
	return nil
}

// parser takes the flags of one command.
type parser struct {
	command string
	use     use
	o       options
}

// leading takes the flags in front, and a "--" behind them, and gives the rest.
func (p *parser) leading(args []string) ([]string, error) {
	for len(args) > 0 && isFlag(args[0]) {
		rest, err := p.flag(args[0], args[1:])
		if err != nil {
			return nil, err
		}
		args = rest
	}
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	return args, nil
}

// anywhere takes flags up to "--" wherever they stand, and gives the rest.
func (p *parser) anywhere(args []string) (rest []string, err error) {
	for len(args) > 0 && args[0] != "--" {
		if !isFlag(args[0]) {
			rest, args = append(rest, args[0]), args[1:]
			continue
		}
		if args, err = p.flag(args[0], args[1:]); err != nil {
			return nil, err
		}
	}
	if len(args) > 0 {
		rest = append(rest, args[1:]...)
	}
	return rest, nil
}

func isFlag(arg string) bool { return len(arg) > 1 && arg[0] == '-' && arg != "--" }

// flag takes one flag and its value.
func (p *parser) flag(arg string, rest []string) ([]string, error) {
	if arg == "--help" || arg == "-h" {
		return nil, errHelp
	}
	name, value, inline := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
	var names []string
	for _, f := range flagsOf(p.use) {
		names = append(names, f.name)
		if f.name != name || !strings.HasPrefix(arg, "--") {
			continue
		}
		switch {
		case f.arg == "" && inline:
			return nil, fmt.Errorf("--%s takes no value", name)
		case f.arg != "" && !inline && len(rest) == 0:
			return nil, fmt.Errorf("--%s needs a value: --%s %s", name, name, f.arg)
		case f.arg != "" && !inline && strings.HasPrefix(rest[0], "--"): // most likely forgotten
			return nil, fmt.Errorf("--%s needs a value: --%s %s; what follows begins with --, and a value that does is written --%s=VALUE", name, name, f.arg, name)
		case f.arg != "" && !inline:
			value, rest = rest[0], rest[1:]
		}
		if kind, _ := f.takes(); kind == fileValue || kind == dirValue {
			if err := unexpanded(value); err != nil {
				return nil, fmt.Errorf("--%s: %w", name, err)
			}
		}
		if err := f.set(&p.o, value); err != nil {
			return nil, fmt.Errorf("%s: %w", strings.TrimSpace("--"+name+" "+shown(f, value)), err)
		}
		p.o.given[name] = true
		return rest, nil
	}
	return nil, p.unknown(arg, strings.TrimLeft(name, "-"), names)
}

// takers are the commands that take a flag.
func takers(f flag) (names []string) {
	for _, c := range commands() {
		if c.use&f.use != 0 {
			names = append(names, c.name)
		}
	}
	return names
}

// english writes a list: "run, explain and policy".
func english(words []string) string {
	if last := len(words) - 1; last > 0 {
		return strings.Join(words[:last], ", ") + " and " + words[last]
	}
	return strings.Join(words, "")
}

// meant is the flag that somebody means by a name, or "".
func meant(name string, names []string) string {
	if here := elsewhere()[name]; slices.Contains(names, here) {
		return here
	}
	return similar(name, names)
}

// elsewhere has the flags of other tools, and what they are called here.
func elsewhere() map[string]string {
	return map[string]string{
		"timeout": "wall", "time": "wall", "read": "ro", "readonly": "ro", "read-only": "ro", "write": "rw", "writable": "rw",
		"bind": "mount", "volume": "mount", "hide": "protect", "deny": "protect", "cwd": "workspace", "chdir": "workspace", "dir": "workspace",
		"config": "policy", "profile": "preset", "allow-net": "net", "allow-read": "ro", "allow-write": "rw", "verbose": "report", "environment": "env", "processes": "pids",
	}
}

// shown keeps a variable's value out of messages.
func shown(f flag, value string) string {
	if f.name == "env" {
		name, _, _ := strings.Cut(value, "=")
		return name
	}
	return value
}

func (p *parser) unknown(arg, name string, names []string) error {
	arg, _, _ = strings.Cut(arg, "=")
	for _, f := range flagTable() {
		if f.name == name && f.use&p.use == 0 {
			return fmt.Errorf("%s takes no --%s, which is for %s", p.command, name, english(takers(f)))
		}
	}
	if like := meant(name, names); like != "" || slices.Contains(names, name) {
		if like == "" {
			like = name
		}
		return fmt.Errorf("unknown flag %s; do you mean --%s?", arg, like)
	}
	if p.use == forRun {
		return fmt.Errorf("unknown flag %s; `sandboxd help run` lists the flags (a command's own come after it)", arg)
	}
	return fmt.Errorf("unknown flag %s; `sandboxd help %s` lists the flags", arg, p.command)
}
