package cli

import (
	"fmt"
	"io"
	"strings"
)

// manual is `sandboxd man`: the manual page in the man(7) macros, made from the tables
// that the parser uses.
func manual(args []string, s System) int {
	if len(args) == 1 && (args[0] == "--help" || args[0] == "-h") {
		return reject(s, "man", errHelp)
	}
	if len(args) > 0 {
		return complain(s, exitUsage, fmt.Errorf("unknown argument %q; type `sandboxd man | man -l -`", args[0]))
	}
	m := roff{s.Stdout}
	m.macro(".TH SANDBOXD 1 \"\" \"sandboxd %s\" \"User Commands\"", word(Version()))
	m.section("NAME")
	m.text("sandboxd - run one untrusted command in a kernel-enforced jail, and say what was enforced")
	m.section("SYNOPSIS")
	for i, c := range people() {
		if i > 0 {
			m.macro(".br")
		}
		m.synopsis(c)
	}
	m.macro(".br")
	m.line(".B sandboxd")
	m.line(".RI [ server\\~flags ]")
	m.section("DESCRIPTION")
	m.text(aboutSandboxd)
	m.section("COMMANDS")
	for _, c := range people() {
		m.command(c)
	}
	m.section("SERVER")
	m.text("Without a command sandboxd serves one broker: the policy comes on descriptor 3, frames on standard input and output. The protocol is described in PROTOCOL.md.")
	for _, f := range parseUsage(s.ServerUsage) {
		m.flag(f)
	}
	m.section("EXIT STATUS")
	m.text("Of run:")
	for _, e := range exitTable {
		m.tagged(e.code, e.meaning)
	}
	m.section("ENVIRONMENT")
	for _, v := range variables {
		m.tagged(v.name, v.meaning)
	}
	m.section("NOTES")
	m.text(aboutLimits)
	m.section("SEE ALSO")
	m.line(".BR bwrap (1),")
	m.line(".BR landlock (7),")
	m.line(".BR seccomp (2),")
	m.line(".BR cgroups (7)")
	return 0
}

// people are the commands that a person types.
func people() []command {
	var out []command
	for _, c := range commands() {
		if !c.hidden {
			out = append(out, c)
		}
	}
	return out
}

const (
	aboutSandboxd = `The command sees a minimal file system, writes only where it is let, and has no network unless it is given one. Linux enforces this by namespaces and mounts (which bubblewrap makes), Landlock and seccomp; macOS by a Seatbelt profile. After each command sandboxd says which protections the kernel really enforced.

Paths in flags may be relative. Sizes take K, M, G and T, powers of 1024. Times take s, m and h, and are whole seconds. 0 is no ceiling.`

	aboutLimits = `It is no virtual machine: the command talks to the host's kernel, and a defect of the kernel is a way out. Everything in the workspace can be read, changed and deleted. A command of root's is uid 0 without capabilities; run as an ordinary user where you can.`
)

var exitTable = []struct{ code, meaning string }{
	{"the command's own", "the command ended by itself"},
	{"128+n", "signal n ended it"},
	{"124", "the time of --wall was over"},
	{"125", "sandboxd refused, or failed, or could not write what it had to say; the message says why"},
	{"126", "the command is there, but cannot be executed"},
	{"127", "the command, or its interpreter, was not found"},
	{"141", "whoever read the output went away"},
	{"2", "wrong arguments"},
}

var variables = []struct{ name, meaning string }{
	{fenceRequired, "1 makes run --preset fence fail where not all of it is enforced."},
	{"SANDBOXD_CGROUP_BASE", "The cgroup v2 directory for ceilings, where no --cgroup-base names one."},
	{"NO_COLOR", "No colours on a terminal, if it is set and not empty."},
}

// roff writes one page.
type roff struct{ w io.Writer }

func (m roff) line(text string)                 { fmt.Fprintln(m.w, text) }
func (m roff) macro(format string, args ...any) { fmt.Fprintf(m.w, format+"\n", args...) }
func (m roff) section(name string)              { m.macro(".SH %q", name) }

// text prints paragraphs.
func (m roff) text(s string) {
	for i, p := range strings.Split(s, "\n\n") {
		if i > 0 {
			m.line(".PP")
		}
		m.line(escape(strings.ReplaceAll(p, "\n", " ")))
	}
}

func (m roff) tagged(name, text string) {
	m.line(".TP")
	m.macro(".B %s", word(name))
	m.line(escape(text))
}

func (m roff) synopsis(c command) {
	m.macro(".B %s", word("sandboxd "+c.name))
	if c.args != "" {
		m.macro(".I %s", word(c.args))
	}
}

func (m roff) command(c command) {
	m.macro(".SS %q", escape(strings.TrimSpace("sandboxd "+c.synopsis())))
	m.text(capital(c.help) + ".")
	if c.about != "" {
		m.line(".PP")
		m.text(c.about)
	}
	for _, f := range c.allFlags() {
		m.flag(f)
	}
}

func (m roff) flag(f flag) {
	m.line(".TP")
	m.macro(".B %s", word(f.synopsis()))
	m.line(escape(capital(f.help)) + ".")
}

// word is escaped for a macro's line, where quotes group.
func word(s string) string { return strings.ReplaceAll(escape(s), `"`, `\(dq`) }

// escape keeps text from being taken for macros, and its hyphens from being broken or
// turned into others, so that flags can be copied out of the page.
func escape(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`, "`", `\(ga`, "'", `\(aq`).Replace(s)
	if strings.HasPrefix(s, ".") {
		s = `\&` + s
	}
	return s
}
