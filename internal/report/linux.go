package report

import (
	"slices"
	"strings"

	"sandboxd/protocol"
)

// linux says what held on Linux.
func (l *list) linux(o Outcome) {
	l.reported(o.Report)
	switch {
	case !o.Jailed:
		l.degraded(o)
	case o.Report == nil:
		l.silent()
		l.skip(protocol.TagBwrap, "not claimed: no report from inside shows that its namespaces were made")
		l.skip(protocol.TagMounts, "not claimed: no report from inside shows that the view was built")
	default:
		l.jail(o)
	}
	if o.Report != nil {
		l.restrictions(o)
	}
	l.shared(o)
	l.cgroup(o)
}

// namespaces lists what bubblewrap must have made anew, as named below /proc/self/ns.
func namespaces(p protocol.Policy) []string {
	kinds := []string{"cgroup", "ipc", "mnt", "pid", "user", "uts"}
	if p.Network.Mode != protocol.NetFull {
		kinds = append(kinds, "net")
	}
	return kinds
}

// jail claims bubblewrap's work: a bubblewrap that merely executes its last argument
// reaches stage 2 as well, so each claim needs what stage 2 saw from inside.
func (l *list) jail(o Outcome) {
	var missing []string
	for _, kind := range namespaces(o.Policy) {
		if !slices.Contains(o.Report.Namespaces, kind) {
			missing = append(missing, kind)
		}
	}
	var what string
	switch {
	case len(missing) > 0:
		what = "not shown to be new from inside: namespace " + strings.Join(missing, ", ")
	case o.NoCaps && !o.Report.NoCaps:
		what = "not shown from inside that every capability was dropped"
	case o.NoUserns && !o.Report.NoUserns:
		what = "not shown from inside that no user namespace can be made"
	}
	if what != "" {
		l.skip(protocol.TagBwrap, what)
		l.skip(protocol.TagMounts, "not claimed, because of bwrap: "+what)
		return
	}
	l.apply(protocol.TagBwrap, nested(o))
	l.audit(o)
}

// nested says what --allow-nested-userns leaves open.
func nested(o Outcome) string {
	switch {
	case !o.NestedUserns:
		return ""
	case o.Report.LandlockABI > 0:
		return "nested_userns=allowed,mount=refused" // Landlock refuses every mount
	}
	return "nested_userns=allowed,mount=allowed"
}

func (l *list) audit(o Outcome) {
	_, want := asked(o.Checks)
	if o.Report.LandlockABI == 0 {
		o.Audit = o.Audit.WithoutLandlock()
	}
	switch r := o.Report; {
	case r.Masks < want:
		l.skip(protocol.TagMounts, "not claimed: "+number(o.Report.Masks)+" of "+number(want)+" masks were verified from inside")
	case r.Mounts == 0 || r.Mounts < o.Mounts: // no view is without a mount
		l.skip(protocol.TagMounts, "not claimed: "+number(r.Mounts)+" of "+number(o.Mounts)+" mount points were found from inside")
	default:
		l.apply(protocol.TagMounts, o.Audit.Fields())
	}
	for _, s := range o.Audit.Skips {
		l.skip(s.Tag, s.Reason)
	}
}

// degraded is Linux without bubblewrap: everything that it would have done is a skip.
func (l *list) degraded(o Outcome) {
	if o.Report == nil {
		l.silent()
	}
	reason := o.NoJail
	if reason == "" {
		reason = "bubblewrap was not used"
	}
	reason += "; no namespaces: the command sees the host's processes and network interfaces, and a process of it can outlive a helper that is killed"
	if o.Root {
		reason += "; uid 0 keeps its capabilities: to set the clock or restart the machine, for instance"
	}
	l.skip(protocol.TagBwrap, reason)
	view := "no view of its own: nothing is masked or made read-only by mounts"
	if n := len(o.Policy.Protected); n > 0 {
		view += ", what protected names (" + plural(n, "path", "paths") + ") shows wherever a grant covers it"
	}
	if o.Policy.Scratch == protocol.ScratchTmpfs {
		view += ", and there is no private scratch"
	}
	view += "; modes, owners, times and attributes can be changed of any file of this user's, for which Landlock has no right"
	l.skip(protocol.TagMounts, view)
	if o.Report == nil || !o.Report.LandlockUnix {
		l.skip(protocol.TagSockets, "path sockets of the host's services can be connected to")
	}
	for _, s := range o.Audit.Skips {
		if s.Tag == protocol.TagGuard { // the others are about mounts that there are not
			l.skip(s.Tag, s.Reason)
		}
	}
}

// restrictions are what stage 2 put on itself and read back.
func (l *list) restrictions(o Outcome) {
	r := o.Report
	l.landlock(o)
	filters := r.SeccompMode == filterMode
	if filters && r.SeccompHardening {
		l.apply(protocol.TagSeccompHardening, "")
	} else {
		l.fallback(protocol.TagSeccompHardening, unsaid(r))
	}
	if o.Policy.Network.Mode != protocol.NetFull {
		if filters && r.SeccompNet {
			l.apply(protocol.TagSeccompNet, "")
		} else {
			l.fallback(protocol.TagSeccompNet, unsaid(r))
		}
	}
	if r.NoNewPrivs {
		l.apply(protocol.TagNoNewPrivs, "")
	} else {
		l.fallback(protocol.TagNoNewPrivs, unsaid(r))
	}
}

func (l *list) landlock(o Outcome) {
	r := o.Report
	if r.LandlockABI == 0 {
		l.fallback(protocol.TagLandlock, unsaid(r))
		return
	}
	l.apply(protocol.TagLandlock, "abi="+number(r.LandlockABI))
	if r.LandlockNet {
		l.apply(protocol.TagLandlockNet, "")
	} else if o.Policy.Network.Mode != protocol.NetFull {
		l.fallback(protocol.TagLandlockNet, unsaid(r))
	}
	if r.LandlockScope {
		l.apply(protocol.TagLandlockScope, "")
	}
	if r.LandlockUnix {
		l.apply(protocol.TagLandlockUnix, "")
	}
}

// cgroup speaks only of ceilings that were asked for.
func (l *list) cgroup(o Outcome) {
	var files []string
	if o.Policy.Limits.MemBytes != 0 {
		files = append(files, "memory.max")
	}
	if o.Policy.Limits.Pids != 0 {
		files = append(files, "pids.max")
	}
	if len(files) == 0 {
		return
	}
	c := o.Cgroup
	if !c.Applied {
		reason := c.Reason
		if reason == "" {
			reason = "no cgroup was made"
		}
		l.skip(protocol.TagCgroupV2, reason+"; "+strings.Join(files, " and ")+" not applied")
		return
	}
	detail := ""
	if c.Allowance > 0 && o.Policy.Limits.Pids != 0 {
		detail = "pids_allowance=" + number(c.Allowance)
	}
	l.apply(protocol.TagCgroupV2, detail)
	if c.OOMKill > 0 {
		l.apply(protocol.TagCgroupV2, "oom_kill="+number(c.OOMKill))
	}
	if c.PidsDenied > 0 {
		l.apply(protocol.TagCgroupV2, "pids_denied="+number(c.PidsDenied))
	}
}
