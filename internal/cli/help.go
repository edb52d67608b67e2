package cli

import (
	"fmt"
	"io"
	"strings"

	"sandboxd/internal/selftest"
)

const selfTestUsage = selftest.Usage

// help is `sandboxd help [COMMAND]`, and --help.
func help(args []string, s System) int {
	if len(args) > 1 {
		return complain(s, exitUsage, fmt.Errorf("unknown argument %q; type `sandboxd help [COMMAND]`", args[1]))
	}
	if len(args) == 1 {
		if args[0] == "server" {
			fmt.Fprint(s.Stdout, s.ServerUsage)
			return 0
		}
		c, ok := find(args[0])
		if !ok {
			return complain(s, exitUsage, noSuchCommand(args[0]))
		}
		printCommandHelp(s.Stdout, c)
		return 0
	}
	fmt.Fprint(s.Stdout, `sandboxd runs one untrusted command at a time in a kernel-enforced jail and says
what was really enforced.

`)
	for _, c := range commands() {
		if !c.hidden {
			row(s.Stdout, "sandboxd "+c.synopsis(), c.help)
		}
	}
	row(s.Stdout, "sandboxd [server flags]", "serve: policy on descriptor 3, frames on stdio (protocol/PROTOCOL.md; flags: sandboxd help server)")
	fmt.Fprint(s.Stdout, `
Begin with:

  sandboxd run -- make test          writes this directory only, no network
  sandboxd run --report -- ./tool    and say afterwards what was enforced
  sandboxd explain some/path         why the command can, or cannot, use it
  sandboxd doctor                    what is missing on this host

Flags of a command: sandboxd help COMMAND.
`)
	return 0
}

// printCommandHelp prints what a person needs at the keyboard; the manual has the rest.
func printCommandHelp(w io.Writer, c command) {
	if c.usage != "" {
		fmt.Fprint(w, c.usage)
		return
	}
	fmt.Fprintf(w, "usage: sandboxd %s\n\n%s.\n", c.synopsis(), capital(c.help))
	if flags := flagsOf(c.use); len(flags) > 0 {
		fmt.Fprintln(w)
		for _, f := range flags {
			row(w, f.synopsis(), f.help)
		}
	}
	if c.use&forAPolicy != 0 {
		fmt.Fprint(w, "\nSizes take K, M, G, T (1024); times s, m, h; 0 is no ceiling.\n")
	}
	if c.use == forRun {
		fmt.Fprint(w, "\n"+exitCodes)
	}
}

const exitCodes = `Exit code: the command's own; 128+n for signal n; 124 the time of --wall was
over; 125 sandboxd refused or failed; 126 the command cannot be executed; 127
it, or its interpreter, was not found; 2 wrong arguments.
`

func (c command) synopsis() string { return strings.TrimSpace(c.name + " " + c.args) }

func (f flag) synopsis() string { return strings.TrimSpace("--" + f.name + " " + f.arg) }

// row prints a name and what it means, within 80 columns as far as words allow.
func row(w io.Writer, name, text string) {
	const column, width = 26, 80
	if len(name) > column-3 {
		fmt.Fprintf(w, "  %s\n%*s", name, column, "")
	} else {
		fmt.Fprintf(w, "  %-*s", column-2, name)
	}
	at := column
	for i, word := range strings.Fields(text) {
		if i > 0 && at+1+len(word) > width {
			fmt.Fprintf(w, "\n%*s", column, "")
			at = column
		} else if i > 0 {
			fmt.Fprint(w, " ")
			at++
		}
		fmt.Fprint(w, word)
		at += len(word)
	}
	fmt.Fprintln(w)
}

func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// parseUsage reads flags out of a usage text: lines that begin with "  --NAME", with
// what follows further in as their continuation.
func parseUsage(text string) []flag {
	var out []flag
	for line := range strings.SplitSeq(text, "\n") {
		rest, ok := strings.CutPrefix(line, "  --")
		if !ok {
			if more := strings.TrimSpace(line); len(out) > 0 && strings.HasPrefix(line, "        ") && more != "" {
				out[len(out)-1].help = strings.TrimSpace(out[len(out)-1].help + " " + more)
			}
			continue
		}
		name, help, _ := strings.Cut(rest, "  ")
		name, arg, _ := strings.Cut(name, " ")
		out = append(out, flag{name: name, arg: arg, help: strings.TrimSpace(help)})
	}
	return out
}

// allFlags are the flags of a command, wherever they are written down.
func (c command) allFlags() []flag {
	if c.usage != "" {
		return parseUsage(c.usage)
	}
	return flagsOf(c.use)
}
