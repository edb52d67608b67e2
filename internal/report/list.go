package report

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"sandboxd/protocol"
)

// order is the fixed order of an enforcement list: what says
// that nothing can be believed first, then file system, system calls, ceilings, and
// last what is no layer. Within one tag what was applied comes before what was not.
var order = []string{
	protocol.TagJail, protocol.TagStage2,
	protocol.TagBwrap, protocol.TagMounts,
	protocol.TagSeatbelt, protocol.TagSeatbeltFs, protocol.TagSeatbeltNet,
	protocol.TagRoots,
	protocol.TagLandlock, protocol.TagLandlockNet, protocol.TagLandlockScope, protocol.TagLandlockUnix,
	protocol.TagSeccompNet, protocol.TagSeccompHardening, protocol.TagNoNewPrivs,
	protocol.TagRlimitFsize, protocol.TagRlimitCPU,
	protocol.TagRlimitAddressSpace, protocol.TagRlimitProcesses,
	protocol.TagCgroupV2,
	protocol.TagNetworkProxy, protocol.TagSockets, protocol.TagGuard, protocol.TagOptionalMount,
	protocol.TagDarwinProcessLifecycle, protocol.TagPlatformRestrictions,
}

// A report fits into a frame whatever the policy names: so many skips of one tag
// are listed, the rest is counted, and each text is cut.
const (
	maxSkips = 32
	maxText  = 8 << 10 // bytes
)

type entry struct {
	tag  string
	skip bool
	text string
}

// list collects entries in any order.
type list []entry

// apply claims a layer. detail is what follows the colon, or "".
func (l *list) apply(tag, detail string) {
	text := tag
	if detail != "" {
		text += ":" + clean(detail)
	}
	*l = append(*l, entry{tag, false, text})
}

// skip says that a layer is not there. A name outside the vocabulary becomes part of
// the reason: a reader must be able to match on every tag.
func (l *list) skip(tag, reason string) {
	if reason == "" {
		reason = "no reason was given"
	}
	if !slices.Contains(order, tag) {
		tag, reason = protocol.TagStage2, "an unknown layer "+strconv.Quote(tag)+" was skipped: "+reason
	}
	*l = append(*l, entry{tag, true, "skip:" + tag + ": " + clean(reason)})
}

// says tells whether the list already holds a skip of tag.
func (l list) says(tag string) bool {
	return slices.ContainsFunc(l, func(e entry) bool { return e.skip && e.tag == tag })
}

// strings gives the entries in the documented order, each once.
func (l list) strings() []string {
	sorted := slices.Clone(l)
	slices.SortStableFunc(sorted, func(a, b entry) int {
		if a.tag != b.tag {
			return slices.Index(order, a.tag) - slices.Index(order, b.tag)
		}
		return rank(a) - rank(b)
	})
	seen := map[string]bool{}
	sorted = slices.DeleteFunc(sorted, func(e entry) bool {
		again := seen[e.text]
		seen[e.text] = true
		return again
	})
	var out []string
	skips := map[string]int{}
	for i, e := range sorted {
		if e.skip {
			skips[e.tag]++
		}
		if !e.skip || skips[e.tag] <= maxSkips {
			out = append(out, e.text)
		}
		if last := i == len(sorted)-1 || sorted[i+1].tag != e.tag; last && skips[e.tag] > maxSkips {
			out = append(out, "skip:"+e.tag+": and "+strconv.Itoa(skips[e.tag]-maxSkips)+" more of this kind")
		}
	}
	return out
}

func rank(e entry) int {
	if e.skip {
		return 1
	}
	return 0
}

// clean escapes what could forge a second entry in a log or hide one on a terminal:
// control and format characters, and bytes that are no UTF-8.
func clean(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		if b.Len() > maxText {
			b.WriteString("…")
			break
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			b.WriteString(`\x` + string("0123456789abcdef"[s[i]>>4]) + string("0123456789abcdef"[s[i]&15]))
		case strconv.IsPrint(r):
			b.WriteRune(r)
		default:
			q := strconv.QuoteRuneToASCII(r)
			b.WriteString(q[1 : len(q)-1])
		}
		i += n
	}
	return b.String()
}
