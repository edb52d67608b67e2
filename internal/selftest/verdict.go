package selftest

import (
	"slices"
	"strings"

	"sandboxd/protocol"
)

// Verdict is what a probe found.
type Verdict string

// The verdicts.
const (
	Enforced Verdict = "ENFORCED"
	Skipped  Verdict = "SKIPPED"
	Failed   Verdict = "FAILED"
	Untried  Verdict = "NOT RUN" // interrupted, or its fixture could not be made
)

// Finding is one probe's outcome.
type Finding struct {
	Probe   string   `json:"probe"`
	Verdict Verdict  `json:"verdict"`
	Means   string   `json:"means"`             // what the probe tries
	Missing []string `json:"missing,omitempty"` // of a skip: the layers any of which would enforce it
	Reason  string   `json:"reason,omitempty"`  // of what was not enforced
	Note    string   `json:"note,omitempty"`    // of what was enforced: what could not be tried here, what stays open
	MS      int64    `json:"ms"`                // milliseconds
}

// enforced, failed, untried and skipped make findings; the engine fills in the rest.
func enforced(note string) Finding { return Finding{Verdict: Enforced, Note: note} }
func failed(why string) Finding    { return Finding{Verdict: Failed, Reason: why} }
func untried(why string) Finding   { return Finding{Verdict: Untried, Reason: why} }
func skipped(why string, missing ...string) Finding {
	return Finding{Verdict: Skipped, Reason: why, Missing: missing}
}

// lacking says whether a report claims none of the layers, and why. One that it claims
// in part (with a skip beside it) is there, and has to enforce. No layers means that the
// helper itself enforces it, which never lacks.
func lacking(layers, enforcement []string) (reason string, is bool) {
	var why []string
	for _, tag := range layers {
		if claims(enforcement, tag) {
			return "", false
		}
		why = append(why, skipReason(tag, enforcement))
	}
	why = slices.DeleteFunc(why, func(s string) bool { return s == "" })
	return strings.Join(why, "; "), len(layers) > 0
}

func claims(enforcement []string, tag string) bool {
	return slices.ContainsFunc(enforcement, func(e string) bool {
		layer, skip := protocol.Layer(e)
		return layer == tag && !skip
	})
}

// skipReason is the report's own entry for a layer. The rights of a later Landlock
// have no entry where there is none at all.
func skipReason(tag string, enforcement []string) string {
	names := []string{tag}
	if parent, _, ok := strings.Cut(tag, "-"); ok && parent == protocol.TagLandlock {
		names = append(names, parent)
	}
	for _, name := range names {
		for _, e := range enforcement {
			if rest, ok := strings.CutPrefix(e, "skip:"+name+":"); ok {
				return name + ": " + strings.TrimSpace(rest)
			}
		}
	}
	if foreign(tag) {
		return ""
	}
	for _, e := range enforcement {
		if abi, ok := strings.CutPrefix(e, protocol.TagLandlock+":"); ok && len(names) > 1 {
			return tag + ": this kernel's Landlock (" + abi + ") has no such right"
		}
	}
	return tag + ": not in the report"
}

// foreign says whether the layer belongs to another system than the one that speaks
// here: not worth a word in a reason.
func foreign(tag string) bool {
	for _, t := range protocol.Tags() {
		if t.ID == tag {
			return !slices.Contains(t.Platforms, platform)
		}
	}
	return false
}
