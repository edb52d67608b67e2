package selftest

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"sandboxd/protocol"
)

// Usage is the help of the command.
const Usage = `usage: sandboxd self-test [flags]

Runs every probe against this machine's kernel, through the real jail.

  --json                  the findings as one JSON object
  --require all|TAG,...   a skip for lack of one of these layers is a failure
  --only PROBE,...        run only these, which the result then says
  --bwrap PATH            use this bubblewrap
  --cgroup-base DIR       the cgroup v2 directory for ceilings
  --dir DIR               where the fixture is made (default: /var/tmp, else the
                          user's cache directory); not below /tmp

Exit code: 0 no probe failed; 1 one failed, or a required layer is missing; 2 usage;
3 nothing could be run or proved here.
`

// all is what --require takes for every layer.
const all = "all"

// options are the parsed flags.
type options struct {
	json       bool
	require    []string
	only       []string
	bwrap      string
	cgroupBase string
	dir        string
}

func parseOptions(args []string) (options, error) {
	var o options
	var require, only string
	fs := flag.NewFlagSet("self-test", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.BoolVar(&o.json, "json", false, "")
	// Given twice, both count: a gate that forgets the first one is no gate.
	fs.Func("require", "", more(&require))
	fs.Func("only", "", more(&only))
	fs.StringVar(&o.bwrap, "bwrap", "", "")
	fs.StringVar(&o.cgroupBase, "cgroup-base", "", "")
	fs.StringVar(&o.dir, "dir", "", "")
	if err := fs.Parse(args); err != nil {
		return options{}, err
	}
	if fs.NArg() > 0 {
		return options{}, fmt.Errorf("unknown argument %q; `sandboxd self-test --help` lists the flags", fs.Arg(0))
	}
	for _, path := range []*string{&o.bwrap, &o.cgroupBase, &o.dir} {
		if *path == "" {
			continue
		}
		abs, err := filepath.Abs(*path)
		if err != nil {
			return options{}, fmt.Errorf("cannot resolve %q: %w", *path, err)
		}
		*path = abs
	}
	given := map[string]bool{}
	fs.Visit(func(f *flag.Flag) { given[f.Name] = true })
	if given["require"] {
		if err := o.requirement(require); err != nil {
			return options{}, err
		}
	}
	if given["only"] {
		o.only = strings.Split(only, ",")
	}
	_, err := o.chosen(Probes(platform))
	return o, err
}

// chosen are the probes that --only names, or all. A name that is no probe is an
// error: it would run nothing.
func (o options) chosen(probes []Probe) ([]Probe, error) {
	if o.only == nil {
		return probes, nil
	}
	for _, name := range o.only {
		if !slices.ContainsFunc(probes, func(p Probe) bool { return p.Name == name }) {
			return nil, fmt.Errorf("--only %q is no probe; a run without it lists them", name)
		}
	}
	return slices.DeleteFunc(probes, func(p Probe) bool { return !slices.Contains(o.only, p.Name) }), nil
}

// requirement checks the names: a misspelt one would require nothing.
func (o *options) requirement(list string) error {
	o.require = strings.Split(list, ",")
	for _, tag := range o.require {
		known := tag == all || tag == "erlc" || slices.ContainsFunc(protocol.Tags(), func(t protocol.Tag) bool { return t.ID == tag && t.Skip && t.Applied })
		if !known {
			return fmt.Errorf("--require %q is no layer's name; give %s, or names such as bwrap,landlock,cgroup-v2", tag, all)
		}
	}
	return nil
}

// demanded says whether a skip is one that --require makes a failure: one of the
// layers that would have enforced the probe was named. What a host lacks besides
// layers (a compiler) has to be named.
func (o options) demanded(f Finding) bool {
	if f.Verdict != Skipped {
		return false
	}
	return slices.ContainsFunc(f.Missing, func(tag string) bool {
		return slices.Contains(o.require, tag) || (slices.Contains(o.require, all) && tag != "erlc")
	})
}

// unmet gives the layers that --require names and the baseline does not claim. A layer
// behind which another one stands skips no probe, and is missing all the same.
func (o options) unmet(baseline []string) []string {
	var tags []string
	for _, tag := range o.require {
		if tag != all && tag != "erlc" {
			tags = append(tags, protocol.Missing([]string{tag}, baseline, nil)...)
		}
	}
	if slices.Contains(o.require, all) {
		for _, e := range baseline {
			if tag, skip := protocol.Layer(e); skip && !slices.Contains(tags, tag) {
				tags = append(tags, tag)
			}
		}
	}
	return tags
}

func isHelp(err error) bool { return errors.Is(err, flag.ErrHelp) }

// more adds to a list that is separated by commas.
func more(list *string) func(string) error {
	given := false
	return func(v string) error {
		if given {
			v = *list + "," + v
		}
		*list, given = v, true
		return nil
	}
}
