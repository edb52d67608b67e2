package cli

import (
	"fmt"
	"slices"

	"sandboxd/internal/explain"
	"sandboxd/internal/plan"
	"sandboxd/protocol"
)

// advice is what to change, or why nothing helps.
type advice struct {
	Want   string   `json:"want"`           // "read", "write", "both"; "host-read", "host": the host's in place of the jail's own
	Change []string `json:"change"`         // all of them together; empty where nothing helps
	Why    string   `json:"why,omitempty"`  // why nothing helps
	Note   string   `json:"note,omitempty"` // what the change means besides
}

// maxTries bounds how many changed policies are planned for one answer.
const maxTries = 24

// maxChanges bounds how many changes one answer may take.
const maxChanges = 3

// advise looks for the smallest change that gives more at a path. Each one that is
// said has been tried: the changed policy was built, surveyed and planned.
func (e explainer) advise(t task, sc explain.Scene, a explain.Answer) []advice {
	var out []advice
	add := func(want string, enough func(explain.Answer) bool, write bool) {
		if !enough(a) {
			out = append(out, e.search(t, sc, a, want, enough, write))
		}
	}
	if a.HeldBack != "" || a.Path == "/" {
		return nil
	}
	if a.Missing == "" { // there is nothing to read before somebody writes it
		add("read", func(a explain.Answer) bool { return a.Enough(false) }, false)
	}
	add("write", func(a explain.Answer) bool { return a.Enough(true) }, true)
	if a.OnHost() {
		add("host-read", func(a explain.Answer) bool { return a.Effect == plan.ReadOnly || a.Effect == plan.ReadWrite }, false)
		add("host", func(a explain.Answer) bool { return a.Effect == plan.ReadWrite }, true)
	}
	if len(out) == 2 && slices.Equal(out[0].Change, out[1].Change) && out[0].Why == out[1].Why {
		out[0].Want = "both"
		out = out[:1]
	}
	return out
}

// variant is a policy with changes, planned.
type variant struct {
	task    task
	sc      explain.Scene
	changes []string
}

// search goes through single changes, then through those that go with them.
func (e explainer) search(t task, sc explain.Scene, a explain.Answer, want string, enough func(explain.Answer) bool, write bool) advice {
	no := advice{Want: want, Change: []string{}, Why: explain.Fixed(a)}
	refusal := ""
	queue := []variant{{task: t, sc: sc}}
	for tries := 0; len(queue) > 0 && tries < maxTries; queue = queue[1:] {
		at := queue[0]
		for _, c := range at.sc.Changes(at.sc.At(a.Path), write) {
			v, ok, err := e.try(at, c, a)
			if !ok {
				continue
			}
			tries++
			if err != nil {
				if refusal == "" {
					refusal = fmt.Sprintf("%s would be refused: %v", v.changes[len(v.changes)-1], err)
				}
				continue
			}
			after := v.sc.At(a.Path)
			switch {
			case enough(after) && after.HeldBack != "":
				no.Why = "the policy could allow it, but not the host: " + after.HeldBack
				return no
			case enough(after):
				return advice{Want: want, Change: v.changes, Note: e.remark(t, sc, a, after, c)}
			case len(v.changes) < maxChanges:
				queue = append(queue, v)
			}
		}
	}
	if refusal != "" {
		no.Why = refusal
	}
	return no
}

// remark is what a person should know before making a change.
func (e explainer) remark(t task, sc explain.Scene, before, after explain.Answer, c explain.Change) string {
	if why := sc.Service(before.Path); why != "" {
		return "think twice: " + why
	}
	if guard := t.sources[keyFor(before.Decider)].guard; guard != "" {
		return "think twice, it is guarded: " + guard
	}
	opens := c.Kind == explain.AddWritable || c.Kind == explain.AddReadable
	if opens && before.Missing != "" && after.Region != before.Path && after.Region != before.Region {
		return "it is not there yet, so everything in " + after.Region + " is opened"
	}
	return ""
}

// try plans one more change; false where it does not apply.
func (e explainer) try(at variant, c explain.Change, a explain.Answer) (variant, bool, error) {
	if c.Kind == explain.Unguard && at.task.sources[keyFor(at.sc.At(a.Path).Decider)].guard == "" {
		return at, false, nil
	}
	pretend := ""
	if c.Path != a.Path && (c.Kind == explain.AddWritable || c.Kind == explain.AddReadable) &&
		checkWorkspace(c.Path, resolved(getenv(e.s.Environ, "HOME"))) != nil {
		// Nobody should open all of this for one name that is not there yet.
		c.Path, pretend = a.Path, a.Path
	}
	o, text, ok := at.task.with(c)
	if pretend != "" {
		text += " once it is there"
	}
	if !ok || slices.Contains(at.changes, text) {
		return at, false, nil
	}
	v := variant{changes: append(slices.Clone(at.changes), text)}
	var err error
	if v.task, err = newTask(o, e.s); err == nil {
		v.sc, err = e.sceneWith(v.task, pretend)
	}
	return v, true, err
}

// with gives the options that a change makes of this task's, and the change in words;
// false where it does not apply.
func (t task) with(c explain.Change) (options, string, bool) {
	o := t.o
	src := t.sources[entryKey{c.List, c.Index}]
	switch c.Kind {
	case explain.AddWritable:
		o.rw = append(slices.Clone(o.rw), c.Path)
		return o, "--rw " + quoted(c.Path), true
	case explain.AddReadable:
		o.ro = append(slices.Clone(o.ro), c.Path)
		return o, "--ro " + quoted(c.Path), true
	case explain.AddMount:
		o.mounts = append(slices.Clone(o.mounts), protocol.Mount{Path: c.Path, Access: protocol.ReadWrite, Required: true})
		return o, "--mount " + quoted(c.Path) + ":rw", true
	case explain.Unguard:
		o.noGuard = true
		return o, "--no-guard", !t.o.noGuard && t.o.policyFile == ""
	case explain.MountAccess:
		return t.wider(o, c, src)
	case explain.Remove:
		return t.without(o, c, src)
	}
	return o, "", false
}

// wider makes a read-only mount a read-write one where it was written down.
func (t task) wider(o options, c explain.Change, src source) (options, string, bool) {
	switch {
	case src.flag != "":
		o.mounts = slices.Clone(o.mounts)
		for i, m := range o.mounts {
			if absolute(t.cwd, m.Path) == c.Path {
				o.mounts[i].Access = protocol.ReadWrite
			}
		}
		return o, "--mount " + quoted(c.Path) + ":rw in place of the read-only one", true
	case src.file:
		o.amended = append(slices.Clone(o.amended), src.at)
		return o, fmt.Sprintf(`"access": "rw" in mounts[%d] of %s`, src.at.index, src.text), true
	}
	return o, "", false
}

// without takes a protected path out where it was written down.
func (t task) without(o options, c explain.Change, src source) (options, string, bool) {
	switch {
	case src.flag != "":
		o.protect = slices.DeleteFunc(slices.Clone(o.protect), func(p string) bool { return absolute(t.cwd, p) == c.Path })
		return o, "without --protect " + quoted(c.Path), true
	case src.file:
		o.dropped = append(slices.Clone(o.dropped), src.at)
		return o, fmt.Sprintf("without protected[%d] %q of %s", src.at.index, c.Path, src.text), true
	}
	return o, "", false
}

func keyFor(d explain.Decider) entryKey { return entryKey{d.List, d.Index} }
