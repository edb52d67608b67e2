package report

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"sandboxd/internal/host"
	"sandboxd/internal/plan"
	"sandboxd/internal/stage2/spec"
	"sandboxd/protocol"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// base is a jailed execution on Linux with everything asked for and there.
func base() Outcome {
	return Outcome{
		Policy: protocol.Policy{
			WritableRoots: []string{"/w"},
			Protected:     []string{"/w/.env"},
			Network:       protocol.Network{Mode: protocol.NetOff},
			Limits:        protocol.Limits{CPUSeconds: 5, MemBytes: 1 << 30, Pids: 20, FsizeBytes: 1 << 20},
			Scratch:       protocol.ScratchTmpfs,
		},
		Platform: "linux",
		Jailed:   true,
		Checks: []spec.Check{
			{Path: "/w", What: spec.CheckRoot}, {Path: "/w", What: spec.CheckPin},
			{Path: "/w/.env", What: spec.CheckMask},
		},
		NoCaps: true, NoUserns: true, Mounts: 12,
		Report: &spec.Report{
			Namespaces: []string{"mnt", "pid", "user", "ipc", "uts", "cgroup", "net"},
			NoCaps:     true, NoUserns: true, Mounts: 12,
			Roots: 1, Masks: 1,
			LandlockABI: 7, LandlockNet: true, LandlockScope: true,
			SeccompMode: 2, SeccompFilters: 3, SeccompNet: true, SeccompHardening: true,
			NoNewPrivs: true, RlimitFsize: true, RlimitCPU: true,
		},
		Audit:  plan.Audit{RW: 1, Mask: 1, Scratch: "tmpfs", Base: "minimal", Digest: "0123456789abcdef"},
		Cgroup: Cgroup{Applied: true, Allowance: 22},
	}
}

// changed is base after change.
func changed(change func(*Outcome)) Outcome {
	o := base()
	change(&o)
	return o
}

func degraded(o *Outcome) {
	o.Jailed, o.NoJail = false, "no bwrap in the trusted places"
	o.Report.Namespaces, o.Report.Masks, o.Checks = nil, 0, o.Checks[:1]
	o.NoCaps, o.NoUserns, o.Mounts = false, false, 0
	o.Report.NoCaps, o.Report.NoUserns, o.Report.Mounts = false, false, 0
}

func darwin(o *Outcome) {
	o.Platform = "darwin"
	o.Report = &spec.Report{Roots: 1, RlimitFsize: true, RlimitCPU: true, Seatbelt: true, Skips: []spec.Skip{
		{Tag: "rlimit-address-space", Reason: "the kernel answers EINVAL to a finite RLIMIT_AS"},
	}}
	o.Report.RlimitProcesses = true
	o.Checks = o.Checks[:1]
}

// goldens has one case per platform and per degradation.
var goldens = []struct {
	name   string
	change func(*Outcome)
}{
	{"linux-full", func(*Outcome) {}},
	{"linux-nothing-asked", func(o *Outcome) {
		o.Policy = protocol.Policy{Network: protocol.Network{Mode: protocol.NetFull}, Scratch: protocol.ScratchTmpfs}
		o.Checks, o.Cgroup = nil, Cgroup{Reason: "no usable cgroup"}
		o.Audit = plan.Audit{Scratch: "tmpfs", Base: "minimal", Digest: "0123456789abcdef"}
		o.Report = &spec.Report{Namespaces: o.Report.Namespaces[:6], NoCaps: true, NoUserns: true, Mounts: 12, LandlockABI: 7, LandlockScope: true,
			SeccompMode: 2, SeccompHardening: true, NoNewPrivs: true}
	}},
	{"linux-oom-and-pids", func(o *Outcome) { o.Cgroup.OOMKill, o.Cgroup.PidsDenied = 1, 4 }},
	{"linux-stricter-limits", func(o *Outcome) { o.Report.FsizeInherited, o.Report.CPUInherited = 4096, 2 }},
	{"linux-no-cgroup", func(o *Outcome) {
		o.Cgroup = Cgroup{Reason: "the helper's own cgroup holds processes; give --cgroup-base (systemd: Delegate=yes, DelegateSubgroup=)"}
	}},
	{"linux-no-landlock", func(o *Outcome) {
		o.Report.LandlockABI, o.Report.LandlockNet, o.Report.LandlockScope = 0, false, false
		o.Report.Skips = []spec.Skip{{Tag: "landlock", Reason: "Landlock was not enabled at boot (EOPNOTSUPP)"}}
	}},
	{"linux-old-landlock", func(o *Outcome) {
		o.Report.LandlockABI, o.Report.LandlockNet, o.Report.LandlockScope = 2, false, false
		o.Report.Skips = []spec.Skip{{Tag: "landlock-net", Reason: "ABI 2, came with 4"}, {Tag: "landlock-scope", Reason: "ABI 2, came with 6"}}
	}},
	{"linux-no-seccomp", func(o *Outcome) {
		o.Report.SeccompMode, o.Report.SeccompFilters, o.Report.SeccompNet, o.Report.SeccompHardening = 0, 0, false, false
		o.Report.Skips = []spec.Skip{{Tag: "seccomp-hardening", Reason: "no filters"}, {Tag: "seccomp-net", Reason: "no filters"}}
	}},
	{"linux-proxy", func(o *Outcome) {
		o.Policy.Network = protocol.Network{Mode: protocol.NetProxy, Allow: []string{"a.example", "b.example"}, Proxy: "http://127.0.0.1:1"}
	}},
	{"linux-nested-userns", func(o *Outcome) { o.NestedUserns, o.NoUserns, o.Report.NoUserns = true, false, false }},
	{"linux-nested-userns-no-landlock", func(o *Outcome) { // nothing refuses its mounts
		o.NestedUserns, o.NoUserns, o.Report.NoUserns = true, false, false
		o.Report.LandlockABI, o.Report.LandlockNet, o.Report.LandlockScope = 0, false, false
		o.Report.Skips = []spec.Skip{{Tag: "landlock", Reason: "not in this kernel (ENOSYS)"}}
	}},
	{"linux-newest-landlock", func(o *Outcome) { o.Report.LandlockABI, o.Report.LandlockUnix = 9, true }},
	{"linux-plan-skips", func(o *Outcome) {
		o.Audit.Skips = []plan.Skip{
			{Tag: "mounts", Reason: `protected[1] "/w/link" is a link that the command can delete`},
			{Tag: "sockets", Reason: `path sockets below "/" stay reachable`},
			{Tag: "guard", Reason: `"/w/.git/hooks" is writable`},
		}
		o.Extra = []plan.Skip{{Tag: "mounts", Reason: `"/w/.env" was replaced on the host during the run; stopped`}}
	}},
	{"linux-silent-stage2", func(o *Outcome) { o.Report = nil }},
	{"linux-degraded", degraded},
	{"linux-degraded-root", func(o *Outcome) { degraded(o); o.Root = true }},
	{"linux-degraded-no-landlock", func(o *Outcome) {
		degraded(o)
		o.Report.LandlockABI, o.Report.LandlockNet, o.Report.LandlockScope = 0, false, false
		o.Report.Skips = []spec.Skip{{Tag: "landlock", Reason: "not in this kernel (ENOSYS)"}}
	}},
	{"linux-degraded-plan-skips", func(o *Outcome) { // no mount failed where none was made
		degraded(o)
		o.Audit.Skips = []plan.Skip{{Tag: "mounts", Reason: "about a mount"}, {Tag: "guard", Reason: `"/w/.git/hooks" is writable`}}
	}},
	{"linux-degraded-silent", func(o *Outcome) { degraded(o); o.Report = nil }},
	{"darwin-full", darwin},
	{"darwin-plan-skips", func(o *Outcome) {
		darwin(o)
		o.Audit.Skips = []plan.Skip{{Tag: "mounts", Reason: `"/w/f" has 2 hard links`}, {Tag: "guard", Reason: `"/w/.git/hooks" is writable`}}
	}},
	{"darwin-no-witness", func(o *Outcome) { darwin(o); o.Report.Seatbelt = false }},
	{"darwin-nested", func(o *Outcome) {
		darwin(o)
		o.Jailed, o.NoJail, o.Report.Seatbelt = false, "sandbox_apply: Operation not permitted: this process is sandboxed already", false
	}},
	{"darwin-silent", func(o *Outcome) { darwin(o); o.Report = nil }},
	{"unsupported", func(o *Outcome) { o.Platform, o.Jailed, o.Report = "plan9", false, nil }},
}

func TestGolden(t *testing.T) {
	seen := map[string]bool{}
	for _, g := range goldens {
		file := filepath.Join("testdata", g.name+".golden")
		seen[file] = true
		got := strings.Join(Entries(changed(g.change)), "\n") + "\n"
		if *update {
			if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil || got != string(want) {
			t.Errorf("%s: %v\ngot\n%swant\n%s", g.name, err, got, want)
		}
	}
	files, err := filepath.Glob("testdata/*.golden")
	if err != nil || len(files) != len(seen) {
		t.Errorf("%d golden files for %d cases, %v", len(files), len(seen), err)
	}
}

// Every entry's layer is in the vocabulary, in this form and on this platform.
func TestVocabulary(t *testing.T) {
	tags := map[string]protocol.Tag{}
	for _, tag := range protocol.Tags() {
		tags[tag.ID] = tag
		if (tag.Applied || tag.Skip) != slices.Contains(order, tag.ID) {
			t.Errorf("%s: the order of entries and tags.toml differ", tag.ID)
		}
	}
	for _, g := range goldens {
		o := changed(g.change)
		platform := o.Platform
		if !Supported(platform) {
			platform = "other"
		}
		for _, e := range Entries(o) {
			id, skip := protocol.Layer(e)
			tag := tags[id]
			if skip && !tag.Skip || !skip && !tag.Applied || !slices.Contains(tag.Platforms, platform) {
				t.Errorf("%s: %q is not in the vocabulary of %s", g.name, e, platform)
			}
		}
	}
}

// A full report satisfies what the policy demands, and each degradation does not.
func TestRequiredIsMet(t *testing.T) {
	has := func(string) bool { return true }
	missing := func(o Outcome) []string {
		return protocol.Missing(protocol.Required(o.Policy, o.Platform, has), Entries(o), []string{
			protocol.TagDarwinProcessLifecycle, protocol.TagRlimitAddressSpace})
	}
	for _, g := range goldens {
		full := slices.Contains([]string{"linux-full", "linux-nothing-asked", "linux-oom-and-pids", "linux-proxy",
			"linux-nested-userns", "linux-old-landlock", "linux-newest-landlock", "linux-stricter-limits", "darwin-full"}, g.name)
		if got := missing(changed(g.change)); (len(got) == 0) != full {
			t.Errorf("%s: missing %v", g.name, got)
		}
	}
}

// Each row breaks one witness; the claim must go and a skip must name it.
func TestEachClaimNeedsItsWitness(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*Outcome)
		gone   []string
	}{
		{"no report", func(o *Outcome) { o.Report = nil }, []string{"bwrap", "mounts", "roots", "rlimit-fsize", "rlimit-cpu"}},
		{"one namespace is the helper's", func(o *Outcome) { o.Report.Namespaces = o.Report.Namespaces[1:] }, []string{"bwrap", "mounts"}},
		{"no network namespace", func(o *Outcome) { o.Report.Namespaces = o.Report.Namespaces[:6] }, []string{"bwrap", "mounts"}},
		{"capabilities are left", func(o *Outcome) { o.Report.NoCaps = false }, []string{"bwrap", "mounts"}},
		{"a user namespace can be made", func(o *Outcome) { o.Report.NoUserns = false }, []string{"bwrap", "mounts"}},
		{"a mount point short", func(o *Outcome) { o.Report.Mounts = 11 }, []string{"mounts"}},
		{"no mounts, asked or found", func(o *Outcome) { o.Report.Mounts, o.Mounts = 0, 0 }, []string{"mounts"}},
		{"a mask short", func(o *Outcome) { o.Report.Masks = 0 }, []string{"mounts"}},
		{"a root short", func(o *Outcome) { o.Report.Roots = 0 }, []string{"roots"}},
		{"no roots and no checks", func(o *Outcome) { o.Report.Roots, o.Checks = 0, nil }, []string{"roots"}},
		{"no Landlock ABI", func(o *Outcome) { o.Report.LandlockABI = 0 }, []string{"landlock"}},
		{"no Landlock network", func(o *Outcome) { o.Report.LandlockNet = false }, []string{"landlock-net"}},
		{"Seccomp not 2", func(o *Outcome) { o.Report.SeccompMode = 0 }, []string{"seccomp-net", "seccomp-hardening"}},
		{"no net filter", func(o *Outcome) { o.Report.SeccompNet = false }, []string{"seccomp-net"}},
		{"no hardening", func(o *Outcome) { o.Report.SeccompHardening = false }, []string{"seccomp-hardening"}},
		{"NoNewPrivs 0", func(o *Outcome) { o.Report.NoNewPrivs = false }, []string{"no-new-privs"}},
		{"no file size", func(o *Outcome) { o.Report.RlimitFsize = false }, []string{"rlimit-fsize"}},
		{"no CPU time", func(o *Outcome) { o.Report.RlimitCPU = false }, []string{"rlimit-cpu"}},
		{"no cgroup", func(o *Outcome) { o.Cgroup.Applied = false }, []string{"cgroup-v2"}},
		{"degraded", degraded, []string{"bwrap", "mounts"}},
		{"no profile witness", func(o *Outcome) { darwin(o); o.Report.Seatbelt = false }, []string{"seatbelt", "seatbelt-fs", "seatbelt-net"}},
		{"seatbelt not used", func(o *Outcome) { darwin(o); o.Jailed = false }, []string{"seatbelt", "seatbelt-fs", "seatbelt-net"}},
	} {
		whole := base()
		if changed(test.change).Platform == "darwin" {
			darwin(&whole)
		}
		for _, tag := range test.gone {
			if a, s := find(Entries(whole), tag); !a || s {
				t.Errorf("%s: without the change %s is applied %v, skipped %v", test.name, tag, a, s)
			}
			if a, s := find(Entries(changed(test.change)), tag); a || !s {
				t.Errorf("%s: %s is applied %v, skipped %v", test.name, tag, a, s)
			}
		}
	}
}

func find(entries []string, tag string) (applied, skipped bool) {
	for _, e := range entries {
		if id, skip := protocol.Layer(e); id == tag {
			applied, skipped = applied || !skip, skipped || skip
		}
	}
	return applied, skipped
}

func TestCeilingsAreNamedOnlyWhenAskedFor(t *testing.T) {
	for _, test := range []struct {
		limits protocol.Limits
		want   string // of the cgroup's skip
	}{
		{protocol.Limits{}, ""},
		{protocol.Limits{WallSeconds: 1, OutputBytes: 1}, ""},
		{protocol.Limits{MemBytes: 1}, "skip:cgroup-v2: no base; memory.max not applied"},
		{protocol.Limits{Pids: 1}, "skip:cgroup-v2: no base; pids.max not applied"},
		{protocol.Limits{MemBytes: 1, Pids: 1}, "skip:cgroup-v2: no base; memory.max and pids.max not applied"},
	} {
		entries := Entries(changed(func(o *Outcome) { o.Policy.Limits, o.Cgroup = test.limits, Cgroup{Reason: "no base"} }))
		got := ""
		for _, e := range entries {
			if strings.Contains(e, "cgroup") || strings.Contains(e, "rlimit") {
				got += e
			}
		}
		if got != test.want {
			t.Errorf("%+v: got %q, want %q", test.limits, got, test.want)
		}
	}
	for _, e := range Entries(changed(func(o *Outcome) {
		o.Platform = "plan9"
		o.Policy.Limits = protocol.Limits{Pids: 1, FsizeBytes: 1}
	})) {
		if !strings.HasSuffix(e, "; pids and fsize_bytes held by nothing") {
			t.Errorf("got %q", e)
		}
	}
}

func TestReasonsCannotForgeEntries(t *testing.T) {
	o := changed(func(o *Outcome) {
		o.Report.Skips = []spec.Skip{
			{Tag: "landlock-unix", Reason: "a\nbwrap\x1b[0m\u202e\xff\u00e9"},
			{Tag: "made-up\n", Reason: "x"},
			{Tag: "guard"},
		}
	})
	entries := Entries(o)
	for _, want := range []string{
		`skip:landlock-unix: a\nbwrap\x1b[0m\u202e\xff` + "\u00e9",
		`skip:stage2: an unknown layer "made-up\\n" was skipped: x`,
		"skip:guard: no reason was given",
	} {
		if !slices.Contains(entries, want) && !slices.Contains(entries, strings.ReplaceAll(want, `\\`, `\`)) {
			t.Errorf("no %q in %q", want, entries)
		}
	}
}

func TestSameOutcomeSameEntries(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := changed(goldens[rapid.IntRange(0, len(goldens)-1).Draw(t, "case")].change)
		o.Extra = rapid.SliceOf(rapid.Custom(func(t *rapid.T) plan.Skip {
			return plan.Skip{Tag: rapid.SampledFrom(append(slices.Clone(order), "unknown")).Draw(t, "tag"), Reason: rapid.String().Draw(t, "reason")}
		})).Draw(t, "extra")
		first := Entries(o)
		if !slices.Equal(first, Entries(o)) {
			t.Fatal("two reports of one outcome differ")
		}
		last := -1
		for _, e := range first {
			tag, _ := protocol.Layer(e)
			if at := slices.Index(order, tag); at < last {
				t.Fatalf("%q is out of order", e)
			} else {
				last = at
			}
			if strings.ContainsFunc(e, func(r rune) bool { return r < ' ' || r == 0x7f }) {
				t.Fatalf("%q holds a control character", e)
			}
		}
	})
}

func TestForeseen(t *testing.T) {
	o := base()
	o.Report = nil
	for _, tag := range []string{"bwrap", "mounts", "roots", "landlock", "seccomp-net", "seccomp-hardening", "no-new-privs", "cgroup-v2", "rlimit-cpu"} {
		if a, s := find(Foreseen(o), tag); !a || s {
			t.Errorf("%s: applied %v, skipped %v", tag, a, s)
		}
	}
	o.Jailed, o.Cgroup = false, Cgroup{}
	for _, tag := range []string{"bwrap", "mounts", "cgroup-v2"} {
		if a, s := find(Foreseen(o), tag); a || !s {
			t.Errorf("%s: applied %v, skipped %v", tag, a, s)
		}
	}
}

func TestFeatures(t *testing.T) {
	works := host.Bwrap{State: host.Works}
	for _, test := range []struct {
		name string
		f    host.Facts
		more []string
		want string
	}{
		{"all", host.Facts{OS: "linux", Bwrap: works, LandlockABI: 7, Seccomp: true}, []string{"cgroup-v2"}, "rlimits pgroup bwrap landlock seccomp cgroup-v2"},
		{"only a jail", host.Facts{OS: "linux", Bwrap: works}, nil, "rlimits pgroup bwrap"},
		{"no bubblewrap", host.Facts{OS: "linux", Bwrap: host.Bwrap{State: host.Absent}, LandlockABI: 1, Seccomp: true}, nil, "rlimits pgroup landlock seccomp degraded"},
		{"not known", host.Facts{OS: "linux", Seccomp: true}, nil, "rlimits pgroup seccomp"},
		{"macOS", host.Facts{OS: "darwin"}, []string{"seatbelt"}, "rlimits pgroup seatbelt"},
		{"macOS, nested", host.Facts{OS: "darwin"}, nil, "rlimits pgroup degraded"},
		{"another system", host.Facts{OS: "windows", Bwrap: works, LandlockABI: 7, Seccomp: true}, []string{"seatbelt", "cgroup-v2"}, "degraded platform-unsupported"},
	} {
		if got := strings.Join(Features(test.f, test.more...), " "); got != test.want {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
	}
}

// A reason of any length makes an entry that a broker takes.
func TestLongReasonsAreCut(t *testing.T) {
	for _, of := range []string{"a", "é", "\x1b"} {
		got := Entries(changed(func(o *Outcome) {
			o.Extra = []plan.Skip{{Tag: "guard", Reason: "starts so " + strings.Repeat(of, 2*maxText)}}
		}))
		i := slices.IndexFunc(got, func(e string) bool { return strings.HasPrefix(e, "skip:guard: starts so ") })
		if i < 0 || len(got[i]) > maxText+100 || !strings.HasSuffix(got[i], "…") {
			t.Errorf("%q: %q", of, got)
		}
	}
}

// What does not fit is counted, whatever is said twice.
func TestMoreSkipsThanAreListed(t *testing.T) {
	for _, again := range []int{0, 1, maxSkips + 2} {
		got := Entries(changed(func(o *Outcome) {
			for i := range maxSkips + 3 {
				o.Extra = append(o.Extra, plan.Skip{Tag: "guard", Reason: number(uint64(i))})
			}
			o.Extra = append(o.Extra, plan.Skip{Tag: "guard", Reason: number(uint64(again))})
		}))
		listed := slices.DeleteFunc(got, func(e string) bool { return !strings.HasPrefix(e, "skip:guard: ") })
		if len(listed) != maxSkips+1 || listed[maxSkips] != "skip:guard: and 3 more of this kind" {
			t.Errorf("%d again: %q", again, listed)
		}
	}
}

// TestReadOnlyByLandlock: a device counts as read-only if stage 2 reported Landlock.
func TestReadOnlyByLandlock(t *testing.T) {
	p := protocol.Policy{Mounts: []protocol.Mount{{Path: "/srv/dev", Access: protocol.ReadOnly, Required: true}}}
	origin, node := plan.Origin{List: "mounts", Path: "/srv/dev"}, host.Node{Kind: host.CharDevice}
	a := plan.AuditOf(plan.Plan{Ops: []plan.Op{{Path: "/srv/dev", Class: plan.MountRO, Origin: origin, Node: node}},
		Asked: []plan.Asked{{Origin: origin, Path: "/srv/dev", Node: node}}}, p)
	for abi, want := range map[uint64]string{7: "bind_ro=1,", 0: "bind_ro=0,"} {
		o := base()
		o.Audit, o.Report.LandlockABI = a, abi
		all := strings.Join(Entries(o), "\n")
		if !strings.Contains(all, want) || strings.Contains(all, `skip:mounts: mounts[0] "/srv/dev"`) != (abi == 0) {
			t.Errorf("ABI %d: %s", abi, all)
		}
	}
}
