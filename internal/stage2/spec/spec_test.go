package spec

import (
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"sandboxd/internal/host"
	"sandboxd/internal/mpack"
)

// bytesGen makes what the kernel takes as bytes: not always UTF-8.
func bytesGen() *rapid.Generator[string] {
	return rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 20), func(b []byte) string { return string(b) })
}

func sliceGen[T any](g *rapid.Generator[T]) *rapid.Generator[[]T] {
	return rapid.Custom(func(t *rapid.T) []T {
		vs := rapid.SliceOfN(g, 0, 4).Draw(t, "values")
		if len(vs) == 0 {
			return nil
		}
		return vs
	})
}

func commandGen() *rapid.Generator[Command] {
	return rapid.Custom(func(t *rapid.T) Command {
		return Command{
			Argv: sliceGen(bytesGen()).Draw(t, "argv"),
			Env:  sliceGen(bytesGen()).Draw(t, "env"),
			Path: sliceGen(bytesGen()).Draw(t, "path"),
			Cwd:  bytesGen().Draw(t, "cwd"),
		}
	})
}

func specGen() *rapid.Generator[Spec] {
	namespace := rapid.Custom(func(t *rapid.T) Namespace {
		return Namespace{Name: rapid.String().Draw(t, "name"), Ino: rapid.Uint64().Draw(t, "ino")}
	})
	check := rapid.Custom(func(t *rapid.T) Check {
		return Check{
			Path: bytesGen().Draw(t, "path"),
			What: rapid.SampledFrom([]string{CheckRoot, CheckMask, CheckPlaceholder, CheckMount, CheckPin}).Draw(t, "what"),
			ID:   host.ID{Dev: rapid.Uint64().Draw(t, "dev"), Ino: rapid.Uint64().Draw(t, "ino")},
			Rdev: rapid.Uint64().Draw(t, "rdev"),
			List: rapid.String().Draw(t, "list"),
		}
	})
	mount := rapid.Custom(func(t *rapid.T) Mount {
		return Mount{
			Path:     bytesGen().Draw(t, "path"),
			Holds:    Holds(rapid.Uint8Range(uint8(HoldsFile), uint8(HoldsTree)).Draw(t, "holds")),
			ReadOnly: rapid.Bool().Draw(t, "read-only"),
			Optional: rapid.Bool().Draw(t, "optional"),
		}
	})
	hostMount := rapid.Custom(func(t *rapid.T) HostMount {
		return HostMount{Path: bytesGen().Draw(t, "path"), Device: rapid.String().Draw(t, "device")}
	})
	rule := rapid.Custom(func(t *rapid.T) Rule {
		return Rule{
			Path:     bytesGen().Draw(t, "path"),
			Access:   Access(rapid.Uint8Range(uint8(AccessRead), uint8(AccessConnect)).Draw(t, "access")),
			Optional: rapid.Bool().Draw(t, "optional"),
		}
	})
	return rapid.Custom(func(t *rapid.T) Spec {
		return Spec{
			Command:    commandGen().Draw(t, "command"),
			Standby:    rapid.Bool().Draw(t, "standby"),
			Jailed:     rapid.Bool().Draw(t, "jailed"),
			Namespaces: sliceGen(namespace).Draw(t, "namespaces"),
			NoCaps:     rapid.Bool().Draw(t, "no caps"),
			NoUserns:   rapid.Bool().Draw(t, "no userns"),
			View: View{
				Mounts:  sliceGen(mount).Draw(t, "mounts"),
				Host:    sliceGen(hostMount).Draw(t, "host"),
				Devices: sliceGen(rapid.String()).Draw(t, "devices"),
			},
			Checks: sliceGen(check).Draw(t, "checks"),
			Landlock: Landlock{
				Enabled:      rapid.Bool().Draw(t, "enabled"),
				Reason:       rapid.StringN(0, -1, MaxText).Draw(t, "reason"),
				Rules:        sliceGen(rule).Draw(t, "rules"),
				DenyNet:      rapid.Bool().Draw(t, "deny net"),
				Scope:        rapid.Bool().Draw(t, "scope"),
				NestedUserns: rapid.Bool().Draw(t, "nested"),
				NameLacking:  rapid.Bool().Draw(t, "lacking"),
			},
			Seccomp:    Seccomp{DenyNet: rapid.Bool().Draw(t, "seccomp net"), DenyTrace: rapid.Bool().Draw(t, "trace")},
			FsizeBytes: rapid.Uint64().Draw(t, "fsize"),
			CPUSeconds: rapid.Uint64().Draw(t, "cpu"),
			MemBytes:   rapid.Uint64().Draw(t, "mem"),
			Pids:       rapid.Uint64().Draw(t, "pids"),
			Denied:     rapid.String().Draw(t, "denied"),
			Allowed:    rapid.String().Draw(t, "allowed"),
			Require:    sliceGen(rapid.String()).Draw(t, "require"),
		}
	})
}

// tag makes the short names of layers, steps and kinds.
var tag = rapid.StringN(0, -1, maxTag)

func reportGen() *rapid.Generator[Report] {
	skip := rapid.Custom(func(t *rapid.T) Skip {
		return Skip{Tag: tag.Draw(t, "tag"), Reason: rapid.StringN(0, -1, MaxText).Draw(t, "reason")}
	})
	return rapid.Custom(func(t *rapid.T) Report {
		return Report{
			Namespaces:         sliceGen(tag).Draw(t, "namespaces"),
			NoCaps:             rapid.Bool().Draw(t, "no caps"),
			NoUserns:           rapid.Bool().Draw(t, "no userns"),
			Mounts:             rapid.Uint64().Draw(t, "mounts"),
			Roots:              rapid.Uint64().Draw(t, "roots"),
			Masks:              rapid.Uint64().Draw(t, "masks"),
			LandlockABI:        rapid.Uint64().Draw(t, "abi"),
			LandlockNet:        rapid.Bool().Draw(t, "landlock net"),
			LandlockScope:      rapid.Bool().Draw(t, "landlock scope"),
			LandlockUnix:       rapid.Bool().Draw(t, "landlock unix"),
			SeccompMode:        rapid.Uint64().Draw(t, "mode"),
			SeccompFilters:     rapid.Uint64().Draw(t, "filters"),
			SeccompNet:         rapid.Bool().Draw(t, "seccomp net"),
			SeccompHardening:   rapid.Bool().Draw(t, "hardening"),
			NoNewPrivs:         rapid.Bool().Draw(t, "nnp"),
			RlimitFsize:        rapid.Bool().Draw(t, "fsize"),
			RlimitCPU:          rapid.Bool().Draw(t, "cpu"),
			FsizeInherited:     rapid.Uint64().Draw(t, "fsize inherited"),
			CPUInherited:       rapid.Uint64().Draw(t, "cpu inherited"),
			RlimitAddressSpace: rapid.Bool().Draw(t, "as"),
			RlimitProcesses:    rapid.Bool().Draw(t, "nproc"),
			Seatbelt:           rapid.Bool().Draw(t, "seatbelt"),
			Skips:              sliceGen(skip).Draw(t, "skips"),
		}
	})
}

func TestSpecRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := specGen().Draw(t, "spec")
		b := want.Append(nil)
		got, err := DecodeSpec(b)
		if err != nil {
			t.Fatalf("DecodeSpec: %v", err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("got %+v\nwant %+v", got, want)
		}
		if _, err := DecodeSpec(append(b, 0xc0)); err == nil {
			t.Fatal("bytes after the specification were accepted")
		}
	})
}

// A command comes later than its specification only to a standby.
func TestCommandRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := commandGen().Draw(t, "command")
		b := want.Append(nil)
		got, err := DecodeCommand(b)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("got %+v, %v\nwant %+v", got, err, want)
		}
		if _, err := DecodeCommand(append(b, 0xc0)); err == nil {
			t.Fatal("bytes after the command were accepted")
		}
		if n := rapid.IntRange(0, len(b)-1).Draw(t, "cut"); n < len(b) {
			if _, err := DecodeCommand(b[:n]); err == nil {
				t.Fatalf("a command cut to %d of %d bytes was accepted", n, len(b))
			}
		}
	})
	if _, err := DecodeCommand(full().Append(nil)); err == nil {
		t.Error("a specification is no command")
	}
}

// What waits, and what has begun, says so in a message of its own, and nothing else in it.
func TestParked(t *testing.T) {
	b := Parked{}.Append(nil)
	if m, err := DecodeMessage(b); err != nil || m.Parked == nil || m.Report != nil || m.Failure != nil || m.Begun != nil {
		t.Fatalf("got %+v, %v", m, err)
	}
	if m, err := DecodeMessage(Begun{}.Append(nil)); err != nil || m.Begun == nil || m.Report != nil || m.Failure != nil || m.Parked != nil {
		t.Fatalf("got %+v, %v", m, err)
	}
	filled := append(b[:len(b)-1:len(b)-1], 0x81, 0xa1, 'x', 0xc0) // {"x": nil} in place of {}
	both := append(append([]byte{0x82}, b[1:]...), Failure{}.Append(nil)[1:]...)
	for name, b := range map[string][]byte{"filled": filled, "with a failure": both} {
		if m, err := DecodeMessage(b); err == nil {
			t.Errorf("%s: got %+v", name, m)
		}
	}
}

// Only a mount that must be there counts as required.
func TestRequiredMounts(t *testing.T) {
	v := View{Mounts: []Mount{{Path: "/a"}, {Path: "/b", Optional: true}, {Path: "/c"}}}
	if n := v.Required(); n != 2 {
		t.Errorf("%d of two", n)
	}
}

func TestMessageRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		report := reportGen().Draw(t, "report")
		m, err := DecodeMessage(report.Append(nil))
		if err != nil || m.Failure != nil || !reflect.DeepEqual(*m.Report, report) {
			t.Fatalf("got %+v, %v\nwant %+v", m, err, report)
		}
		failure := Failure{
			Step:  tag.Draw(t, "step"),
			Errno: rapid.Uint64().Draw(t, "errno"),
			Msg:   rapid.StringN(0, -1, MaxText).Draw(t, "msg"),
		}
		m, err = DecodeMessage(failure.Append(nil))
		if err != nil || m.Report != nil || *m.Failure != failure {
			t.Fatalf("got %+v, %v\nwant %+v", m, err, failure)
		}
	})
}

// Every proper prefix of a message is an error, so a cut one is never half believed.
func TestPrefixesAreErrors(t *testing.T) {
	for name, b := range map[string][]byte{
		"spec":    full().Append(nil),
		"report":  Report{Namespaces: []string{"mnt"}, Skips: []Skip{{"landlock", "off"}}}.Append(nil),
		"failure": Failure{Step: StepExec, Errno: 2, Msg: "no"}.Append(nil),
	} {
		for n := range b {
			_, errSpec := DecodeSpec(b[:n])
			_, errMessage := DecodeMessage(b[:n])
			if errSpec == nil || errMessage == nil {
				t.Errorf("%s cut to %d of %d bytes was accepted", name, n, len(b))
			}
		}
	}
	if _, err := DecodeSpec(full().Append(nil)); err != nil {
		t.Errorf("the whole specification: %v", err)
	}
}

func full() Spec {
	return Spec{
		Command: Command{Argv: []string{"true"}, Env: []string{"A=b"}, Path: []string{"/bin"}, Cwd: "/"},
		Jailed:  true, Namespaces: []Namespace{{"mnt", 1}}, NoCaps: true,
		View:     View{Mounts: []Mount{{Path: "/", Holds: HoldsTree}}, Host: []HostMount{{"/x", "8:1"}}, Devices: []string{"8:1"}},
		Checks:   []Check{{Path: "/w", What: CheckRoot, List: "writable_roots[0]"}},
		Landlock: Landlock{Enabled: true, Rules: []Rule{{Path: "/", Access: AccessRead}}},
		Require:  []string{"landlock"},
	}
}

func TestMessagesStayBounded(t *testing.T) {
	skips := make([]Skip, 1000)
	for i := range skips {
		skips[i] = Skip{Tag: strings.Repeat("t", 5000), Reason: strings.Repeat("\u00e9", 5000)}
	}
	b := Report{Skips: skips}.Append(nil)
	if len(b) > MaxMessage {
		t.Fatalf("a report of %d bytes", len(b))
	}
	m, err := DecodeMessage(Report{Skips: skips[:MaxSkips/2]}.Append(nil))
	if err != nil || len(m.Report.Skips) != MaxSkips/2 {
		t.Fatalf("half of the bound: %v", err)
	}
	skips = make([]Skip, MaxSkips+1)
	m, err = DecodeMessage(Report{Skips: skips}.Append(nil))
	if err != nil || len(m.Report.Skips) != MaxSkips || !strings.Contains(m.Report.Skips[MaxSkips-1].Reason, "further") {
		t.Fatalf("one skip too many: %+v, %v", m, err)
	}
	m, err = DecodeMessage(Failure{Msg: strings.Repeat("\u20ac", 1000)}.Append(nil))
	if err != nil || len(m.Failure.Msg) > MaxText || !strings.HasSuffix(m.Failure.Msg, "\u20ac...") {
		t.Fatalf("a long message: %v", err)
	}
	m, err = DecodeMessage(Failure{Msg: "a\xffb"}.Append(nil))
	if err != nil || m.Failure.Msg != "a\uFFFDb" {
		t.Fatalf("a message that is not UTF-8: %v", err)
	}
}

func TestDecodeRefuses(t *testing.T) {
	good := full()
	for _, test := range []struct {
		name, want string
		change     func(*Spec)
	}{
		{"unknown check", "unknown kind of check", func(s *Spec) { s.Checks[0].What = "wish" }},
		{"no access", "unknown access 0", func(s *Spec) { s.Landlock.Rules[0].Access = 0 }},
		{"unknown access", "unknown access 9", func(s *Spec) { s.Landlock.Rules[0].Access = 9 }},
		{"no kind of mount", "unknown kind of mount 0", func(s *Spec) { s.View.Mounts[0].Holds = 0 }},
		{"too many namespaces", "more than 16 values", func(s *Spec) { s.Namespaces = make([]Namespace, 17) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, err := DecodeSpec(good.Append(nil))
			if err != nil {
				t.Fatal(err)
			}
			test.change(&s)
			if _, err := DecodeSpec(s.Append(nil)); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
	both := append([]byte{0x82}, Report{}.Append(nil)[1:]...)
	both = append(both, Failure{}.Append(nil)[1:]...)
	if _, err := DecodeMessage(make([]byte, MaxMessage+1)); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Errorf("a message beyond its bound: %v", err)
	}
	long := mpack.AppendStr(mpack.AppendStr(mpack.AppendMap(mpack.AppendStr([]byte{0x81}, "failure"), 3), "step"), strings.Repeat("s", maxTag+1))
	if _, err := DecodeMessage(append(long, Failure{}.Append(nil)[len("\x81\xa7failure\x83\xa4step\xa0"):]...)); err == nil || !strings.Contains(err.Error(), "bytes of text") {
		t.Errorf("a text beyond its bound: %v", err)
	}
	for name, b := range map[string][]byte{"neither": {0x80}, "both": both} {
		if _, err := DecodeMessage(b); err == nil || !strings.Contains(err.Error(), "one message") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestFailureText(t *testing.T) {
	for f, want := range map[Failure]string{
		{Step: StepExec, Msg: "no"}:  "exec: no",
		{Step: StepChdir, Msg: "no"}: "stage2: chdir: no",
	} {
		if f.Error() != want {
			t.Errorf("got %q, want %q", f.Error(), want)
		}
	}
}

func FuzzDecodeSpec(f *testing.F) {
	f.Add(full().Append(nil))
	f.Add(Spec{}.Append(nil))
	f.Add([]byte{0x80})
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := DecodeSpec(b)
		if err != nil {
			return
		}
		again, err := DecodeSpec(s.Append(nil))
		if err != nil || !reflect.DeepEqual(again, s) {
			t.Fatalf("%+v became %+v, %v", s, again, err)
		}
	})
}

func FuzzDecodeMessage(f *testing.F) {
	f.Add(Report{Skips: []Skip{{"landlock", "off"}}}.Append(nil))
	f.Add(Failure{Step: StepExec, Errno: 2, Msg: "no"}.Append(nil))
	f.Add([]byte{0x80})
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := DecodeMessage(b)
		if err != nil {
			return
		}
		var out []byte
		if m.Report != nil {
			out = m.Report.Append(nil)
		} else {
			out = m.Failure.Append(nil)
		}
		again, err := DecodeMessage(out)
		if err != nil || !reflect.DeepEqual(again, m) {
			t.Fatalf("%+v became %+v, %v", m, again, err)
		}
	})
}
