package server

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"

	"sandboxd/internal/jail"
	"sandboxd/protocol"
)

// Options are the server's flags.
type Options struct {
	Bwrap             string
	CgroupBase        string
	Mutable           []string
	AllowUnenforced   bool
	AllowNestedUserns bool
	RequireEnforced   bool
	AcceptSkip        []string
	OnMaskLoss        jail.MaskLoss
	NoStandby         bool
}

// Usage is the text that --help prints for the server's flags.
const Usage = `sandboxd [flags]: serve one broker; base policy on descriptor 3, frames on stdin and stdout
  --bwrap PATH            use this bubblewrap (default: a trusted list, never PATH)
  --cgroup-base DIR       cgroup v2 directory for memory and process ceilings
  --mutable DIR           a directory that other helpers' commands may write (repeatable)
  --allow-unenforced      serve even where nothing can be enforced
  --allow-nested-userns   let the command make user namespaces
  --require-enforced      refuse an execution that would miss a layer its policy demands
  --accept-skip TAG       a layer that may be missing all the same (repeatable)
  --on-mask-loss stop|report
                          when the host replaces what is protected, hidden or guarded during
                          a run: stop the command (default), or only report it
  --standby on|off        keep the next command's jail ready while none runs (default on)
`

type list []string

func (l *list) String() string     { return strings.Join(*l, ",") }
func (l *list) Set(s string) error { *l = append(*l, s); return nil }

// ParseOptions reads the server's flags. Every unknown one is an error: a
// misspelt --cgroup-base must not silently drop a ceiling.
func ParseOptions(args []string) (Options, error) {
	var o Options
	fs := flag.NewFlagSet("sandboxd", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.StringVar(&o.Bwrap, "bwrap", "", "")
	fs.StringVar(&o.CgroupBase, "cgroup-base", "", "")
	fs.Var((*list)(&o.Mutable), "mutable", "")
	fs.BoolVar(&o.AllowUnenforced, "allow-unenforced", false, "")
	fs.BoolVar(&o.AllowNestedUserns, "allow-nested-userns", false, "")
	fs.BoolVar(&o.RequireEnforced, "require-enforced", false, "")
	fs.Var((*list)(&o.AcceptSkip), "accept-skip", "")
	fs.Func("on-mask-loss", "", o.setMaskLoss)
	fs.Func("standby", "", o.setStandby)
	if err := fs.Parse(args); err != nil {
		return Options{}, err
	}
	if fs.NArg() > 0 {
		return Options{}, fmt.Errorf("unknown argument %q", fs.Arg(0))
	}
	for _, dir := range append(slices.Clone(o.Mutable), o.CgroupBase, o.Bwrap) {
		if dir != "" && !strings.HasPrefix(dir, "/") {
			return Options{}, fmt.Errorf("%q is not an absolute path", dir)
		}
	}
	for _, tag := range o.AcceptSkip {
		if !slices.ContainsFunc(protocol.Tags(), func(t protocol.Tag) bool { return t.ID == tag }) {
			return Options{}, fmt.Errorf("--accept-skip %q is no layer's name", tag)
		}
	}
	return o, nil
}

func (o *Options) setStandby(v string) error {
	switch v {
	case "on", "off":
		o.NoStandby = v == "off"
		return nil
	}
	return errors.New("it is on or off")
}

func (o *Options) setMaskLoss(s string) error {
	switch s {
	case "stop":
		o.OnMaskLoss = jail.MaskLossStop
	case "report":
		o.OnMaskLoss = jail.MaskLossReport
	default:
		return errors.New("expected stop or report")
	}
	return nil
}

// IsHelp tells a request for help from a usage error.
func IsHelp(err error) bool { return errors.Is(err, flag.ErrHelp) }
