package report

import (
	"strconv"
	"strings"

	"sandboxd/internal/stage2/spec"
	"sandboxd/protocol"
)

// Entries gives exec_exit.enforcement for one execution, in the documented order.
func Entries(o Outcome) []string {
	var l list
	switch o.Platform {
	case "linux":
		l.linux(o)
	case "darwin":
		l.darwin(o)
	default:
		l.unsupported(o)
	}
	for _, s := range o.Extra {
		l.skip(s.Tag, s.Reason)
	}
	return l.strings()
}

// Foreseen gives the entries that o will lead to if stage 2 succeeds in everything
// that it is going to do: what a server can refuse before anything runs. Kernel
// layers that only stage 2 can find missing are its own business (Spec.Require).
func Foreseen(o Outcome) []string {
	roots, masks := asked(o.Checks)
	o.Report = &spec.Report{
		Namespaces: namespaces(o.Policy), NoCaps: true, NoUserns: true, Mounts: max(o.Mounts, 1), Roots: max(roots, 1), Masks: masks,
		LandlockABI: 1, LandlockNet: true, LandlockScope: true,
		SeccompMode: filterMode, SeccompNet: true, SeccompHardening: true, NoNewPrivs: true,
		RlimitFsize: true, RlimitCPU: true, Seatbelt: true,
	}
	return Entries(o)
}

// filterMode is "Seccomp: 2" of proc(5).
const filterMode = 2

func asked(checks []spec.Check) (roots, masks uint64) {
	for _, c := range checks {
		switch c.What {
		case spec.CheckRoot, spec.CheckMount:
			roots++
		case spec.CheckMask, spec.CheckPlaceholder:
			masks++
		}
	}
	return roots, masks
}

// shared is what both platforms say in the same way.
func (l *list) shared(o Outcome) {
	if o.Policy.Network.Mode == protocol.NetProxy {
		l.skip(protocol.TagNetworkProxy, "nothing here enforces an allow-list: the command is jailed as with mode off, and its "+
			plural(len(o.Policy.Network.Allow), "allowed host was", "allowed hosts were")+" not offered")
	}
	limits := o.Policy.Limits
	r, said := o.Report, spec.Report{}
	if r != nil {
		said = *r
	}
	if limits.FsizeBytes != 0 {
		l.ceiling(r, protocol.TagRlimitFsize, "fsize_bytes", said.RlimitFsize, said.FsizeInherited)
	}
	if limits.CPUSeconds != 0 {
		l.ceiling(r, protocol.TagRlimitCPU, "cpu_s", said.RlimitCPU, said.CPUInherited)
	}
	l.roots(o)
}

// ceiling claims one that stage 2 set, or names it as held by nothing. A limit that the
// helper was started under and that is stricter than the policy's is the one that holds.
func (l *list) ceiling(r *spec.Report, tag, key string, set bool, inherited uint64) {
	if set {
		detail := ""
		if inherited != 0 {
			detail = "inherited=" + number(inherited)
		}
		l.apply(tag, detail)
		return
	}
	l.fallback(tag, key+" is held by nothing: "+unsaid(r))
}

// fallback is the skip of a layer that stage 2 neither claimed nor skipped.
func (l *list) fallback(tag, reason string) {
	if !l.says(tag) {
		l.skip(tag, reason)
	}
}

func unsaid(r *spec.Report) string {
	if r == nil {
		return "stage 2 said nothing"
	}
	return "stage 2 did not report it"
}

// roots claims what stage 2 found to be the inodes that the helper had reached.
func (l *list) roots(o Outcome) {
	if o.Report == nil {
		l.fallback(protocol.TagRoots, "not verified: "+unsaid(nil))
		return
	}
	want, _ := asked(o.Checks)
	if want == 0 && len(o.Policy.WritableRoots) > 0 {
		want = 1 // every writable root exists and has its check
	}
	if got := o.Report.Roots; got < want {
		l.skip(protocol.TagRoots, number(got)+" of "+number(want)+" roots and mounts were verified from inside")
		return
	}
	l.apply(protocol.TagRoots, "verified="+number(o.Report.Roots))
}

// reported takes over stage 2's own skips.
func (l *list) reported(r *spec.Report) {
	if r == nil {
		return
	}
	for _, s := range r.Skips {
		l.skip(s.Tag, s.Reason)
	}
}

func (l *list) silent() {
	l.skip(protocol.TagStage2, "no report arrived from inside, so nothing is known to have been enforced")
}

// unsupported is a system that this program has no jail for, which is no missing
// kernel feature.
func (l *list) unsupported(o Outcome) {
	reason := "this program has no jail for " + o.Platform + ": the command ran with all of its caller's rights"
	if keys := ceilings(o.Policy.Limits, true); keys != "" {
		reason += "; " + keys + " held by nothing"
	}
	l.skip(protocol.TagJail, reason)
}

// ceilings names the kernel's ceilings that were asked for.
func ceilings(limits protocol.Limits, all bool) string {
	var keys []string
	if all && limits.CPUSeconds != 0 {
		keys = append(keys, "cpu_s")
	}
	if limits.MemBytes != 0 {
		keys = append(keys, "mem_bytes")
	}
	if limits.Pids != 0 {
		keys = append(keys, "pids")
	}
	if all && limits.FsizeBytes != 0 {
		keys = append(keys, "fsize_bytes")
	}
	return strings.Join(keys, " and ")
}

func number(n uint64) string { return strconv.FormatUint(n, 10) }

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}
