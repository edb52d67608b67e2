package selftest

import (
	"encoding/hex"
	"fmt"
	"strings"

	"sandboxd/internal/selftest/witness"
	"sandboxd/protocol"
)

// answer is one line of a witness.
type answer struct{ word, detail string }

// outcome is what came of one run of a witness.
type outcome struct {
	err     error // nothing ran, or not to its end
	began   bool
	ended   bool
	effect  bool // the allowed effect was seen from outside
	answers map[string]answer
	raw     string
	exit    protocol.ExecExit // of a jailed run
}

// parse reads a witness's output. Lines of another nonce do not count.
func parse(raw, nonce string) outcome {
	o := outcome{answers: map[string]answer{}, raw: raw}
	for _, line := range strings.Split(raw, "\n") {
		key, rest, _ := strings.Cut(line, " ")
		word, detail, _ := strings.Cut(rest, " ")
		switch {
		case key == "begin":
			o.began = rest == nonce
		case key == "end":
			o.ended = rest == nonce
		case o.began && !o.ended:
			o.answers[key] = answer{word, detail}
		}
	}
	return o
}

// shows says whether the run's output holds text, plainly or in hex.
func (o outcome) shows(text string) bool {
	return strings.Contains(o.raw, text) || strings.Contains(o.raw, hex.EncodeToString([]byte(text)))
}

func (o outcome) is(key, word string) bool { return o.answers[key].word == word }

// ran says why the run is no witness, or "".
func (o outcome) ran(dies bool) string {
	switch {
	case o.err != nil:
		return o.err.Error()
	case !o.began:
		return "the payload did not announce itself" + o.clue()
	case !o.is("effect", witness.OK):
		return "the payload could not do what it is allowed to: " + o.answers["effect"].detail
	case !o.effect:
		return "the payload's allowed effect is not there"
	case !dies && !o.ended:
		return "the payload did not announce its end" + o.clue()
	}
	return ""
}

func (o outcome) clue() string {
	text := strings.TrimSpace(o.raw)
	if len(text) > 200 {
		text = text[len(text)-200:]
	}
	if text == "" {
		return fmt.Sprintf(" (exit code %d)", o.exit.Code)
	}
	return fmt.Sprintf(" (exit code %d, its output: %q)", o.exit.Code, text)
}

// expectation is what a denial probe wants of its runs.
type expectation struct {
	layers  []string // any one of them enforces it; none: the helper itself does
	must    []string // answers that every control must have as ok and the jail as anything else
	may     []string // the same where the controls have it as ok; else a note
	allowed []string // answers that are ok in the jail too
	dies    bool     // the jailed payload is ended before it can announce its end
	secret  string   // must not get out of the jail; "": nothing is looked for
	shown   bool     // the controls must show the secret
	extra   func(jailed outcome) string
}

// judge compares the jailed run with its controls. That a layer is there at all was
// asked before (see Probe.absent), so a report that skips it now is no excuse.
func (x expectation) judge(controls []outcome, jailed outcome) Finding {
	keys, notes, why := x.provable(controls)
	if why != "" {
		return skipped("the control: "+why, unproven)
	}
	if why := jailed.ran(x.dies); why != "" {
		return failed("in the jail: " + why)
	}
	if why, is := lacking(x.layers, jailed.exit.Enforcement); is {
		return failed("the layer is there, but was not in force in this run: " + why)
	}
	for _, key := range x.allowed {
		if !jailed.is(key, witness.OK) {
			return failed(fmt.Sprintf("in the jail %s, which is allowed, gave %q %s", key, jailed.answers[key].word, jailed.answers[key].detail))
		}
	}
	if why := x.breach(keys, jailed); why != "" {
		return failed(why)
	}
	return enforced(strings.Join(notes, "; "))
}

// unproven stands in Finding.Missing where the layer is there, but nothing on this
// host shows that the probe could succeed without it.
const unproven = "control"

// provable gives the answers whose denial would mean something.
func (x expectation) provable(controls []outcome) (keys, notes []string, why string) {
	for _, c := range controls {
		if why := c.ran(false); why != "" {
			return nil, nil, why
		}
		for _, key := range x.must {
			if !c.is(key, witness.OK) {
				return nil, nil, fmt.Sprintf("%s fails without the jail's rule too: %s", key, c.answers[key].detail)
			}
		}
		if x.shown && x.secret != "" && !c.shows(x.secret) {
			return nil, nil, "it did not find the secret"
		}
	}
	keys = append(keys, x.must...)
	for _, key := range x.may {
		if detail, ok := everywhere(controls, key); ok {
			keys = append(keys, key)
		} else {
			notes = append(notes, "not provable here: "+key+" ("+detail+")")
		}
	}
	return keys, notes, ""
}

func everywhere(controls []outcome, key string) (detail string, ok bool) {
	for _, c := range controls {
		if !c.is(key, witness.OK) {
			return c.answers[key].detail, false
		}
	}
	return "", true
}

// breach says what the jail let through. A key without an answer counts as denied
// only where the payload was to die of it.
func (x expectation) breach(keys []string, jailed outcome) string {
	for _, key := range keys {
		a, said := jailed.answers[key]
		switch {
		case a.word == witness.OK:
			return key + " succeeded in the jail"
		case !said && !x.dies:
			return key + " was not tried in the jail"
		}
	}
	if x.dies && jailed.ended {
		return "the payload came to its end in the jail"
	}
	if x.secret != "" && jailed.shows(x.secret) {
		return "the secret's bytes came out of the jail"
	}
	if x.extra != nil {
		return x.extra(jailed)
	}
	return ""
}
