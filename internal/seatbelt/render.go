package seatbelt

import (
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"

	"sandboxd/internal/plan"
)

// Param is one -D NAME=VALUE of sandbox-exec(1).
type Param struct{ Name, Value string }

// Profile is what sandbox-exec gets.
type Profile struct {
	Text   string
	Params []Param
	Digest string // 16 hex digits over text and parameters: for spotting change
}

// Render turns a plan into a profile. Paths appear in it as parameters only. An
// error means that the profile would not hold, or would grant nothing: a path that
// is not resolved, or a helper that a command could replace.
func Render(p plan.Plan, o Options) (Profile, error) {
	if err := check(p, o); err != nil {
		return Profile{}, err
	}
	return write(build(p, o)), nil
}

// Args are sandbox-exec's arguments before the program, for a profile in the text
// or, where file is not "", in that file.
func (p Profile) Args(file string) []string {
	var args []string
	for _, d := range p.Params {
		args = append(args, "-D", d.Name+"="+d.Value)
	}
	if file != "" {
		return append(args, "-f", file)
	}
	return append(args, "-p", p.Text)
}

// writer numbers the parameters, one per value.
type writer struct {
	strings.Builder
	names  map[string]string
	params []Param
}

func write(rules []rule) Profile {
	w := &writer{names: map[string]string{}}
	w.WriteString("(version 1)\n(deny default)\n")
	for _, r := range rules {
		w.rule(r)
	}
	p := Profile{Text: w.String(), Params: w.params}
	h := fnv.New64a()
	fmt.Fprintf(h, "%s%q", p.Text, p.Params)
	p.Digest = fmt.Sprintf("%016x", h.Sum64())
	return p
}

func (w *writer) rule(r rule) {
	if r.note != "" {
		w.WriteString("; " + r.note + "\n")
	}
	verb := "(deny "
	if r.allow {
		verb = "(allow "
	}
	w.WriteString(verb + strings.Join(r.ops, " "))
	for _, f := range r.filters {
		if len(r.filters) > 1 {
			w.WriteString("\n ")
		}
		w.WriteString(" " + w.filter(f))
	}
	w.WriteString(")\n")
}

func (w *writer) filter(f filter) string {
	text := f.raw
	if f.kind != "" {
		text = "(" + f.kind + " (param \"" + w.param(f.value) + "\"))"
	}
	switch f.peer {
	case "remote":
		return "(remote unix-socket " + text + ")"
	case "local":
		return "(local unix-socket " + text + ")"
	}
	return text
}

func (w *writer) param(value string) string {
	name, ok := w.names[value]
	if !ok {
		name = "P" + strconv.Itoa(len(w.params))
		w.names[value] = name
		w.params = append(w.params, Param{name, value})
	}
	return name
}
