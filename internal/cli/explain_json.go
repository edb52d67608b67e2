package cli

import (
	"encoding/json"
	"io"

	"sandboxd/internal/explain"
	"sandboxd/internal/plan"
	"sandboxd/protocol"
)

// explanation is what explain --json prints.
type explanation struct {
	Policy      *document      `json:"policy,omitempty"`
	Refusal     string         `json:"refusal,omitempty"` // this host cannot honour the policy
	Cwd         string         `json:"cwd,omitempty"`
	NoCwd       string         `json:"cwd_refused,omitempty"` // why run would refuse to start there
	Paths       []pathAnswer   `json:"paths,omitempty"`
	View        []pathAnswer   `json:"view,omitempty"` // without paths: every place where something begins
	Environment *environmentOf `json:"environment,omitempty"`
	Skips       []skipDoc      `json:"not_enforced,omitempty"`
	Notes       []string       `json:"notes,omitempty"`
	Argv        *argvDocument  `json:"argv,omitempty"`
}

type pathAnswer struct {
	Asked    string      `json:"asked,omitempty"`
	Path     string      `json:"path"` // with links followed
	Effect   string      `json:"effect"`
	Read     bool        `json:"read"`
	Write    bool        `json:"write"`
	Link     string      `json:"link,omitempty"`
	Decided  *decidedDoc `json:"decided_by"` // null: nothing grants it
	Missing  string      `json:"missing,omitempty"`
	HeldBack string      `json:"held_back,omitempty"`
	Notes    []string    `json:"notes,omitempty"`
	Advice   []advice    `json:"advice,omitempty"`
}

type decidedDoc struct {
	List  string `json:"list"`
	Index *int   `json:"index,omitempty"`
	Path  string `json:"path"`
	From  string `json:"from,omitempty"` // a flag, the preset, FILE:LINE
	Why   string `json:"why,omitempty"`
}

type skipDoc struct {
	Layer  string `json:"layer"`
	Reason string `json:"reason"`
}

func skipDocs(skips []plan.Skip) (out []skipDoc) {
	for _, s := range skips {
		out = append(out, skipDoc{s.Tag, s.Reason})
	}
	return out
}

func answerDoc(t task, a explain.Answer) pathAnswer {
	out := pathAnswer{Path: a.Path, Effect: a.Effect.String(), Read: a.Read, Write: a.Write, Missing: a.Missing, HeldBack: a.HeldBack, Notes: a.Notes}
	if d := a.Decider; d.List != "" {
		out.Decided = &decidedDoc{List: d.List, Path: d.Path, From: t.sources[keyFor(d)].text, Why: d.Why}
		if d.Index >= 0 {
			out.Decided.Index = &d.Index
		}
	}
	return out
}

func (e explainer) printJSON(t task, sc explain.Scene) error {
	doc := explanation{Policy: documentOf(t.policy), Cwd: t.cwd, Skips: skipDocs(sc.Audit.Skips), Notes: t.notes}
	if skip, is := unjailed(sc.Facts); is {
		doc.Skips = append(doc.Skips, skipDocs([]plan.Skip{skip})...)
	}
	if _, err := sc.Plan.CheckCwd(t.cwd, sc.Facts); err != nil {
		doc.NoCwd = err.Error()
	}
	for _, q := range e.asked {
		a := sc.Asked(q.path, q.physical)
		one := answerDoc(t, a)
		one.Asked, one.Notes, one.Advice = q.spelled, q.notes(a), e.advise(t, sc, a)
		doc.Paths = append(doc.Paths, one)
	}
	if len(e.asked) == 0 {
		env := e.environment(t, sc)
		doc.Environment = &env
		for _, r := range flatten(sc.Tree(), false) {
			one := answerDoc(t, r.node.Answer)
			if r.node.Link != "" {
				one.Link, one.Effect = r.node.Link, "link"
			}
			doc.View = append(doc.View, one)
		}
	}
	return printJSON(e.s.Stdout, doc)
}

func (e explainer) printRefusal(t task, err error) {
	printJSON(e.s.Stdout, explanation{Policy: documentOf(t.policy), Refusal: err.Error()})
}

func documentOf(p protocol.Policy) *document {
	d := newDocument(p)
	return &d
}

func printJSON(w io.Writer, doc any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(doc)
}
