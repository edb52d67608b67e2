package cli

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"sandboxd/internal/explain"
	"sandboxd/internal/host"
	"sandboxd/internal/plan"
)

// printPaths answers for each path that was asked for.
func (e explainer) printPaths(t task, sc explain.Scene) {
	out := newScreen(e.s)
	for i, q := range e.asked {
		if i > 0 {
			fmt.Fprintln(out.w)
		}
		a := sc.Asked(q.path, q.physical)
		head := printable(q.path)
		if q.physical != q.path {
			head += printable(" (which is " + q.physical + ")")
		}
		fmt.Fprintln(out.w, out.paint(strong, head))
		out.answer("read", a.Read, a)
		out.answer("write", a.Write, a)
		out.field("decided by", decidedBy(t, a))
		if a.HeldBack != "" {
			out.field("held back", a.HeldBack+"; no policy changes that")
		}
		for _, note := range q.notes(a) {
			out.field("note", note)
		}
		for _, adv := range e.advise(t, sc, a) {
			printAdvice(out, adv)
		}
	}
	out.noJail(sc.Facts)
}

// answer prints yes or no, painted, so it does not go through line's care for what a
// file may be called.
func (s screen) answer(name string, yes bool, a explain.Answer) {
	word, colour, rest := "no", bad, ""
	if yes {
		word, colour = "yes", good
	}
	switch {
	case yes && a.Effect == plan.Private:
		colour, rest = middle, ", privately: the jail's, not the host's"
	case yes && a.Missing != "":
		rest = ", once it is there"
	}
	fmt.Fprintf(s.w, "  %-13s %s%s\n", name, s.paint(colour, word), rest)
}

func printAdvice(out screen, adv advice) {
	name := map[string]string{"read": "to read it", "write": "to write it", "both": "to allow it", "host-read": "host's, read", "host": "host's, write"}[adv.Want]
	if len(adv.Change) == 0 {
		out.field(name, adv.Why)
		return
	}
	text := strings.Join(adv.Change, " and ")
	if adv.Note != "" {
		text += " (" + adv.Note + ")"
	}
	out.field(name, text)
}

// decidedBy names the entry that settles a path, and who put it there.
func decidedBy(t task, a explain.Answer) string {
	d := a.Decider
	at := " " + strconv.Quote(d.Path)
	if d.Path == a.Path {
		at = "" // in the tree it stands beside it
	}
	switch {
	case a.Path == "/" && (d.List == "" || d.List == "base"):
		return "an empty root: what no entry names is not there"
	case d.List == "":
		return "no entry: the policy names neither it nor anything above it, and it is no part of the base view"
	case d.List == "base":
		return fmt.Sprintf("the base view%s: %s", at, d.Why)
	case d.List == "service-socket":
		return fmt.Sprintf("withheld unless a policy names it%s: %s", at, d.Why)
	case d.List == "root-secret":
		return fmt.Sprintf("withheld from commands of root unless a policy names it%s: %s", at, d.Why)
	case d.List == "kernel":
		return fmt.Sprintf("narrowed unless a policy names it%s: %s", at, d.Why)
	case d.List == "proc" || d.List == "dev":
		return fmt.Sprintf("the jail's own %s: %s", d.Path, d.Why)
	}
	name := d.List
	if d.Index >= 0 {
		name = fmt.Sprintf("%s[%d]", d.List, d.Index)
	}
	text := name + at
	if a.Class == plan.ScratchTmpfs {
		text = fmt.Sprintf("scratch %q, which is at %s", t.policy.Scratch, a.Region)
	}
	if src := t.sources[keyFor(d)]; src.text != "" {
		text += " (" + src.text + ")"
	}
	return text
}

// printView prints the whole view as a tree, and what else the command gets.
func (e explainer) printView(t task, sc explain.Scene) {
	out := newScreen(e.s)
	fmt.Fprintln(out.w, out.paint(strong, "What the command sees, and who decides it"))
	root := sc.Tree()
	rows := flatten(root, out.utf8)
	width := 0
	for _, r := range rows {
		width = max(width, min(utf8.RuneCountInString(r.name), maxName))
	}
	for _, r := range rows {
		access, colour := accessWord(r.node.Answer)
		text := decidedBy(t, r.node.Answer)
		if r.node.Link != "" {
			access, colour, text = "link", plain, "so that the name leads where it does on the host"
		}
		pad := max(width-utf8.RuneCountInString(r.name), 0)
		head := fmt.Sprintf("%s%*s  %s%*s  ", printable(r.name), pad, "", out.paint(colour, access), 10-len(access), "")
		used := max(width, utf8.RuneCountInString(r.name)) + 14
		out.line(head, used, min(used, width+14), text)
	}
	e.printRest(out, t, sc)
}

// maxName bounds the column of names; longer ones push their row to the right.
const maxName = 48

// treeRow is one line of the tree.
type treeRow struct {
	name string
	node *explain.Node
}

func flatten(root *explain.Node, drawn bool) []treeRow {
	rows := []treeRow{{"/", root}}
	var walk func(n *explain.Node, indent string)
	walk = func(n *explain.Node, indent string) {
		for i, c := range n.Children {
			branch, next := "├─ ", "│  "
			if i == len(n.Children)-1 {
				branch, next = "└─ ", "   "
			}
			if !drawn {
				branch, next = "  ", "  "
			}
			name := strings.TrimPrefix(strings.TrimPrefix(c.Path, n.Path), "/")
			if c.Link != "" {
				name += " -> " + c.Link
			}
			if c.Kind == host.Dir {
				name += "/"
			}
			rows = append(rows, treeRow{indent + branch + name, c})
			walk(c, indent+next)
		}
	}
	walk(root, "")
	return rows
}

// accessWord puts an answer into one word.
func accessWord(a explain.Answer) (word, colour string) {
	switch a.Effect {
	case plan.ReadWrite:
		return "write", good
	case plan.ReadOnly:
		return "read", middle
	case plan.Masked:
		return "hidden", bad
	case plan.Private:
		return "private", middle
	}
	return "nothing", bad
}
