package cli

import (
	"fmt"
	"io"
	"strings"

	"sandboxd/internal/bwrap"
	"sandboxd/internal/explain"
	"sandboxd/internal/seatbelt"
	"sandboxd/internal/stage2/spec"
	"sandboxd/protocol"
)

// argvDocument is what --argv shows: bubblewrap's arguments, or a Seatbelt profile
// with its parameters.
type argvDocument struct {
	Bwrap       []string `json:"bwrap,omitempty"`
	Descriptors []fdDoc  `json:"descriptors,omitempty"` // what bubblewrap inherits
	Profile     string   `json:"profile,omitempty"`
	Parameters  []string `json:"parameters,omitempty"` // NAME=VALUE
	Assumed     string   `json:"assumed,omitempty"`
}

type fdDoc struct {
	FD      int    `json:"fd"`
	Path    string `json:"path"`              // where it is mounted
	Content string `json:"content,omitempty"` // of a file that masks
}

// firstFD is the number that the helper gives to the first descriptor.
const firstFD = spec.FirstFD + 1 // the arguments' own comes before it

// allOptions are those that rendering asks for, for a bubblewrap that cannot be read.
var allOptions = []string{"unshare-cgroup", "die-with-parent", "cap-drop", "disable-userns", "perms", "size", "bind-fd", "ro-bind-fd"}

func (e explainer) argv(t task, sc explain.Scene) (argvDocument, error) {
	var out argvDocument
	full := t.policy.Network.Mode == protocol.NetFull
	if sc.Facts.OS == "darwin" {
		p, err := seatbelt.Render(sc.Plan, seatbelt.Options{NetFull: full, Layout: sc.Facts.Layout, Helper: sc.Facts.HelperPath})
		if err != nil {
			return out, err
		}
		out.Profile, out.Parameters = p.Text, p.Args("profile")
		out.Assumed = "the helper adds the user's own temporary and cache directories, its private scratch and a path that must be denied"
		return out, nil
	}
	flags := sc.Facts.Bwrap.Flags
	if flags == nil {
		flags = map[string]bool{}
		for _, name := range allOptions {
			flags[name] = true
		}
		out.Assumed = "this host's bubblewrap could not be read, so one that has every option is assumed"
	}
	cmd, err := bwrap.Render(sc.Plan, bwrap.Options{FirstFD: firstFD, Flags: flags, NetFull: full})
	if err != nil {
		return out, err
	}
	out.Bwrap = cmd.Args
	for i, in := range cmd.Inherit {
		out.Descriptors = append(out.Descriptors, fdDoc{firstFD + i, in.Path, in.Content})
	}
	return out, nil
}

func (e explainer) printArgv(t task, sc explain.Scene) error {
	doc, err := e.argv(t, sc)
	if err != nil {
		return err
	}
	if t.o.json {
		return printJSON(e.s.Stdout, explanation{Policy: documentOf(t.policy), Argv: &doc})
	}
	w := e.s.Stdout
	if doc.Profile != "" {
		fmt.Fprint(w, doc.Profile)
		for _, p := range doc.Parameters {
			fmt.Fprintln(w, ";", printable(p))
		}
		fmt.Fprintln(w, ";", doc.Assumed)
		return nil
	}
	printOptions(w, doc.Bwrap)
	for _, d := range doc.Descriptors {
		what := "opened by the helper: " + d.Path
		switch {
		case d.Content != "":
			what = fmt.Sprintf("a file with %q", d.Content)
		case !bindFD(doc.Bwrap, d.FD):
			what = "an empty file"
		}
		fmt.Fprintf(w, "# descriptor %d: %s\n", d.FD, printable(what))
	}
	if doc.Assumed != "" {
		fmt.Fprintln(w, "#", doc.Assumed)
	}
	return nil
}

// printOptions prints one option with its values a line.
func printOptions(w io.Writer, args []string) {
	var line []string
	flush := func() {
		if len(line) > 0 {
			fmt.Fprintln(w, printable(strings.Join(line, " ")))
		}
		line = nil
	}
	for _, arg := range args {
		if strings.HasPrefix(arg, "--") {
			flush()
		}
		line = append(line, quoted(arg))
	}
	flush()
}

// bindFD says whether a descriptor is bound, and not read.
func bindFD(args []string, fd int) bool {
	for i, arg := range args {
		if (arg == "--bind-fd" || arg == "--ro-bind-fd") && args[i+1] == fmt.Sprint(fd) {
			return true
		}
	}
	return false
}
