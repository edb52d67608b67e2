package cli

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"sandboxd/internal/env"
	"sandboxd/internal/explain"
	"sandboxd/internal/host"
	"sandboxd/internal/plan"
	"sandboxd/protocol"
)

// printRest prints what a command gets besides its view.
func (e explainer) printRest(out screen, t task, sc explain.Scene) {
	fmt.Fprintln(out.w)
	out.field("starts in", t.cwd)
	if _, err := sc.Plan.CheckCwd(t.cwd, sc.Facts); err != nil {
		out.field("", "run would refuse this: "+err.Error())
	}
	out.field("network", network(t.policy.Network))
	out.field("limits", limitWords(t.policy.Limits))
	env := e.environment(t, sc)
	out.field("variables", strings.Join(env.Passed, " "))
	if len(env.LeftOut) > 0 {
		out.field("left out", strings.Join(env.LeftOut, " ")+" (--env NAME passes one on)")
	}
	out.field("PATH", strings.Join(env.Path, ":"))
	for _, d := range env.PathLeftOut {
		out.field("not on PATH", d.Dir+": "+d.Reason)
	}
	for _, note := range t.notes {
		out.field("note", note)
	}
	for _, q := range sc.Plan.Asked {
		if q.State == plan.Absent && q.Origin.List != "protected" {
			out.field("not there", fmt.Sprintf("%s[%d] %q (%s)", q.Origin.List, q.Origin.Index, q.Origin.Path, t.sources[entryKey{q.Origin.List, q.Origin.Index}].text))
		}
	}
	for _, skip := range sc.Audit.Skips {
		out.field("NOT enforced", skip.Tag+": "+skip.Reason)
	}
	out.noJail(sc.Facts)
}

// noJail says why nothing of an explanation holds on this host, if it does not.
func (s screen) noJail(f host.Facts) {
	if skip, is := unjailed(f); is {
		s.field("NOT enforced", skip.Tag+": "+skip.Reason)
	}
}

func unjailed(f host.Facts) (plan.Skip, bool) {
	return plan.Skip{Tag: protocol.TagBwrap, Reason: f.Bwrap.Reason + "; none of the above holds here, and run refuses: see `sandboxd doctor`"},
		f.OS == "linux" && f.Bwrap.State == host.Absent
}

func network(n protocol.Network) string {
	switch n.Mode {
	case protocol.NetOff:
		return "off: no interface but a loopback of its own, no sockets of the internet families"
	case protocol.NetFull:
		return "full: the host's, loopback and local net included"
	}
	return "proxy: nothing here enforces an allow-list, so it is off"
}

func limitWords(l protocol.Limits) string {
	var set, open []string
	for _, c := range []struct {
		name, unit string
		value      uint64
	}{
		{"wall", " s", l.WallSeconds}, {"cpu", " s for each process", l.CPUSeconds}, {"mem", inBytes, l.MemBytes},
		{"pids", " tasks", l.Pids}, {"fsize", inBytes + " for each file", l.FsizeBytes}, {"output", inBytes + " for each stream", l.OutputBytes},
	} {
		if c.value == 0 {
			open = append(open, c.name)
		} else {
			number := strconv.FormatUint(c.value, 10)
			if rest, ok := strings.CutPrefix(c.unit, inBytes); ok {
				number, c.unit = sizeWord(c.value), rest
			}
			set = append(set, c.name+" "+number+c.unit)
		}
	}
	text := strings.Join(set, ", ")
	if len(open) > 0 {
		if text != "" {
			text += "; "
		}
		text += "no ceiling: " + strings.Join(open, ", ")
	}
	return text
}

// inBytes marks a unit that is written as --mem takes it.
const inBytes = " bytes"

func sizeWord(n uint64) string {
	for i := len("KMGT") - 1; i >= 0; i-- {
		if shift := 10 * (i + 1); n>>shift > 0 && n&(1<<shift-1) == 0 {
			return strconv.FormatUint(n>>shift, 10) + "KMGT"[i:i+1]
		}
	}
	return strconv.FormatUint(n, 10) + inBytes
}

// environmentOf is what becomes of the caller's variables. There are no values in it.
type environmentOf struct {
	Passed      []string  `json:"passed"`
	LeftOut     []string  `json:"left_out"` // of the caller's own
	Path        []string  `json:"path"`
	PathLeftOut []dirLeft `json:"path_left_out"`
}

type dirLeft struct {
	Dir    string `json:"dir"`
	Reason string `json:"reason"`
}

// environment builds the command's environment as the helper would.
func (e explainer) environment(t task, sc explain.Scene) environmentOf {
	in := env.Input{
		Allow: t.policy.EnvAllow, Request: t.environment(e.s.Environ, nil),
		HelperPath: getenv(e.s.Environ, "PATH"), Layout: sc.Facts.Layout, Scratch: sc.Plan.Scratch,
		View: sc.Plan.Access,
	}
	in.Writable, in.Tmpfs = sc.Plan.Writable()
	built := env.Build(in)
	out := environmentOf{Passed: []string{}, LeftOut: []string{}, Path: list0(built.Path), PathLeftOut: []dirLeft{}}
	have := map[string]bool{}
	for _, entry := range built.Env {
		name, _, _ := strings.Cut(entry, "=")
		have[name] = true
		out.Passed = append(out.Passed, name)
	}
	for _, entry := range e.s.Environ {
		if name, _, _ := strings.Cut(entry, "="); name != "" && !have[name] {
			have[name] = true
			out.LeftOut = append(out.LeftOut, name)
		}
	}
	for _, d := range built.Dropped {
		if d.Dir != "" {
			if left := (dirLeft{d.Dir, d.Reason}); !slices.Contains(out.PathLeftOut, left) {
				out.PathLeftOut = append(out.PathLeftOut, left)
			}
		} else if !have[d.Name] {
			out.LeftOut = append(out.LeftOut, d.Name)
		}
	}
	slices.Sort(out.LeftOut)
	return out
}
