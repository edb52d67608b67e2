package report

import "sandboxd/protocol"

// darwin says what held on macOS. The witness of the profile is stage 2's, which
// tried one path that it must deny and one that it must allow.
func (l *list) darwin(o Outcome) {
	l.reported(o.Report)
	netJailed := o.Policy.Network.Mode != protocol.NetFull
	if o.Jailed && o.Report != nil && o.Report.Seatbelt {
		l.apply(protocol.TagSeatbelt, "")
		l.apply(protocol.TagSeatbeltFs, o.Audit.Fields())
		if netJailed {
			l.apply(protocol.TagSeatbeltNet, "")
		}
		for _, s := range o.Audit.Skips {
			tag := s.Tag
			if tag == protocol.TagMounts {
				tag = protocol.TagSeatbeltFs
			}
			l.skip(tag, s.Reason)
		}
	} else {
		l.noSeatbelt(o, netJailed)
	}
	l.shared(o)
	if o.Policy.Limits.MemBytes != 0 {
		l.ceiling(o.Report, protocol.TagRlimitAddressSpace, "mem_bytes", o.Report != nil && o.Report.RlimitAddressSpace, 0)
	}
	if o.Policy.Limits.Pids != 0 {
		l.ceiling(o.Report, protocol.TagRlimitProcesses, "pids", o.Report != nil && o.Report.RlimitProcesses, 0)
	}
	l.skip(protocol.TagDarwinProcessLifecycle, "descendants are followed by sampling the process table: one that forks twice between two samples can escape the clean-up, not the profile")
}

func (l *list) noSeatbelt(o Outcome, netJailed bool) {
	reason := "not claimed: the report from inside does not show one path denied and one allowed"
	switch {
	case o.Report == nil:
		l.silent()
		reason = "not claimed: no report from inside"
	case !o.Jailed:
		reason = o.NoJail
	}
	l.skip(protocol.TagSeatbelt, reason)
	l.skip(protocol.TagSeatbeltFs, "not claimed, because of seatbelt")
	if netJailed {
		l.skip(protocol.TagSeatbeltNet, "not claimed, because of seatbelt")
	}
}
