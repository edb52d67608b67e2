package spec

import (
	"strings"
	"unicode/utf8"

	"sandboxd/internal/mpack"
)

// Bounds of a message. One message of a SOCK_SEQPACKET has to fit into the
// sender's buffer (net.core.wmem_default, about 200 KB), and the helper reads
// into a buffer of MaxMessage bytes.
const (
	MaxMessage = 1 << 17 // bytes, the largest that Append can make is below
	MaxSkips   = 64      // skips in a report
	MaxText    = 1024    // bytes of a reason or a message
	maxTag     = 64      // bytes of a tag, a step or a kind's name
	maxKinds   = 16      // kinds of namespace; Linux has eight
)

// Message is what comes on fd 4: exactly one of them is set.
type Message struct {
	Report  *Report
	Failure *Failure
	Parked  *Parked
	Begun   *Begun
}

// Error says which step failed and why, in the form spawn_failed has.
func (f Failure) Error() string {
	if f.Step == StepExec {
		return "exec: " + f.Msg
	}
	return "stage2: " + f.Step + ": " + f.Msg
}

// Append writes r as a message. Reasons longer than MaxText are cut; of more
// than MaxSkips skips the last one says how many there were.
func (r Report) Append(dst []byte) []byte {
	dst = mpack.AppendStr(mpack.AppendMap(dst, 1), "report")
	dst = mpack.AppendMap(dst, 23)
	dst = appendList(dst, "namespaces", r.Namespaces, mpack.AppendStr)
	dst = appendTruth(dst, "no_caps", r.NoCaps)
	dst = appendTruth(dst, "no_userns", r.NoUserns)
	dst = appendNumber(dst, "mounts", r.Mounts)
	dst = appendNumber(dst, "roots", r.Roots)
	dst = appendNumber(dst, "masks", r.Masks)
	dst = appendNumber(dst, "landlock_abi", r.LandlockABI)
	dst = appendTruth(dst, "landlock_net", r.LandlockNet)
	dst = appendTruth(dst, "landlock_scope", r.LandlockScope)
	dst = appendTruth(dst, "landlock_unix", r.LandlockUnix)
	dst = appendNumber(dst, "seccomp_mode", r.SeccompMode)
	dst = appendNumber(dst, "seccomp_filters", r.SeccompFilters)
	dst = appendTruth(dst, "seccomp_net", r.SeccompNet)
	dst = appendTruth(dst, "seccomp_hardening", r.SeccompHardening)
	dst = appendTruth(dst, "no_new_privs", r.NoNewPrivs)
	dst = appendTruth(dst, "rlimit_fsize", r.RlimitFsize)
	dst = appendTruth(dst, "rlimit_cpu", r.RlimitCPU)
	dst = appendNumber(dst, "fsize_inherited", r.FsizeInherited)
	dst = appendNumber(dst, "cpu_inherited", r.CPUInherited)
	dst = appendTruth(dst, "rlimit_address_space", r.RlimitAddressSpace)
	dst = appendTruth(dst, "rlimit_processes", r.RlimitProcesses)
	dst = appendTruth(dst, "seatbelt", r.Seatbelt)
	return appendList(dst, "skips", capSkips(r.Skips), appendSkip)
}

func appendSkip(dst []byte, s Skip) []byte {
	dst = appendText(mpack.AppendMap(dst, 2), "tag", clip(s.Tag, maxTag))
	return appendText(dst, "reason", clip(s.Reason, MaxText))
}

// Append writes f as a message; a Msg longer than MaxText is cut.
func (f Failure) Append(dst []byte) []byte {
	dst = mpack.AppendStr(mpack.AppendMap(dst, 1), "failure")
	dst = appendText(mpack.AppendMap(dst, 3), "step", clip(f.Step, maxTag))
	dst = appendNumber(dst, "errno", f.Errno)
	return appendText(dst, "msg", clip(f.Msg, MaxText))
}

// Append writes the message.
func (Parked) Append(dst []byte) []byte {
	return mpack.AppendMap(mpack.AppendStr(mpack.AppendMap(dst, 1), "parked"), 0)
}

// Append writes the message.
func (Begun) Append(dst []byte) []byte {
	return mpack.AppendMap(mpack.AppendStr(mpack.AppendMap(dst, 1), "begun"), 0)
}

// DecodeMessage reads exactly one message, by the same strict rules as
// DecodeSpec and within the bounds of Append. The error is a *mpack.Error.
func DecodeMessage(b []byte) (Message, error) {
	var m Message
	var report Report
	var failure Failure
	err := whole(b, func(r *mpack.Reader) error {
		if len(b) > MaxMessage {
			return r.Fail("more than %d bytes", MaxMessage)
		}
		if err := r.Object([]mpack.Field{
			{Name: "report", Optional: true, Read: func(r *mpack.Reader) error {
				m.Report = &report
				return readReport(&report)(r)
			}},
			{Name: "failure", Optional: true, Read: func(r *mpack.Reader) error {
				m.Failure = &failure
				return readFailure(&failure)(r)
			}},
			{Name: "parked", Optional: true, Read: func(r *mpack.Reader) error {
				m.Parked = &Parked{}
				return object()(r)
			}},
			{Name: "begun", Optional: true, Read: func(r *mpack.Reader) error {
				m.Begun = &Begun{}
				return object()(r)
			}},
		}); err != nil {
			return err
		}
		if one(m.Report != nil)+one(m.Failure != nil)+one(m.Parked != nil)+one(m.Begun != nil) != 1 {
			return r.Fail("expected one message")
		}
		return nil
	})
	if err != nil {
		return Message{}, err
	}
	return m, nil
}

func one(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

func readReport(p *Report) func(*mpack.Reader) error {
	return object(
		mpack.Field{Name: "namespaces", Read: list(&p.Namespaces, maxKinds, clipped(maxTag))},
		mpack.Field{Name: "no_caps", Read: truth(&p.NoCaps)},
		mpack.Field{Name: "no_userns", Read: truth(&p.NoUserns)},
		mpack.Field{Name: "mounts", Read: number(&p.Mounts)},
		mpack.Field{Name: "roots", Read: number(&p.Roots)},
		mpack.Field{Name: "masks", Read: number(&p.Masks)},
		mpack.Field{Name: "landlock_abi", Read: number(&p.LandlockABI)},
		mpack.Field{Name: "landlock_net", Read: truth(&p.LandlockNet)},
		mpack.Field{Name: "landlock_scope", Read: truth(&p.LandlockScope)},
		mpack.Field{Name: "landlock_unix", Read: truth(&p.LandlockUnix)},
		mpack.Field{Name: "seccomp_mode", Read: number(&p.SeccompMode)},
		mpack.Field{Name: "seccomp_filters", Read: number(&p.SeccompFilters)},
		mpack.Field{Name: "seccomp_net", Read: truth(&p.SeccompNet)},
		mpack.Field{Name: "seccomp_hardening", Read: truth(&p.SeccompHardening)},
		mpack.Field{Name: "no_new_privs", Read: truth(&p.NoNewPrivs)},
		mpack.Field{Name: "rlimit_fsize", Read: truth(&p.RlimitFsize)},
		mpack.Field{Name: "rlimit_cpu", Read: truth(&p.RlimitCPU)},
		mpack.Field{Name: "fsize_inherited", Read: number(&p.FsizeInherited)},
		mpack.Field{Name: "cpu_inherited", Read: number(&p.CPUInherited)},
		mpack.Field{Name: "rlimit_address_space", Read: truth(&p.RlimitAddressSpace)},
		mpack.Field{Name: "rlimit_processes", Read: truth(&p.RlimitProcesses)},
		mpack.Field{Name: "seatbelt", Read: truth(&p.Seatbelt)},
		mpack.Field{Name: "skips", Read: list(&p.Skips, MaxSkips, readSkip)},
	)
}

func readSkip(s *Skip) func(*mpack.Reader) error {
	return object(
		mpack.Field{Name: "tag", Read: clipped(maxTag)(&s.Tag)},
		mpack.Field{Name: "reason", Read: clipped(MaxText)(&s.Reason)},
	)
}

func readFailure(f *Failure) func(*mpack.Reader) error {
	return object(
		mpack.Field{Name: "step", Read: clipped(maxTag)(&f.Step)},
		mpack.Field{Name: "errno", Read: number(&f.Errno)},
		mpack.Field{Name: "msg", Read: clipped(MaxText)(&f.Msg)},
	)
}

func clipped(limit int) func(*string) func(*mpack.Reader) error {
	return func(p *string) func(*mpack.Reader) error {
		return func(r *mpack.Reader) error {
			s, err := r.Str()
			if err != nil {
				return err
			}
			if len(s) > limit {
				return r.Fail("more than %d bytes of text", limit)
			}
			*p = s
			return nil
		}
	}
}

func capSkips(skips []Skip) []Skip {
	if len(skips) <= MaxSkips {
		return skips
	}
	kept := append([]Skip(nil), skips[:MaxSkips]...)
	kept[MaxSkips-1] = Skip{
		Tag:    skips[MaxSkips-1].Tag,
		Reason: "this and further skips did not fit into the report",
	}
	return kept
}

// clip makes s valid UTF-8 (a reason may hold a path) and cuts it to limit bytes
// at a character's start.
func clip(s string, limit int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= limit {
		return s
	}
	end := limit - len("...")
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + "..."
}
