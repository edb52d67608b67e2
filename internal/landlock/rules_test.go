package landlock

import (
	"slices"
	"testing"

	"sandboxd/internal/host"
	"sandboxd/internal/plan"
	"sandboxd/internal/stage2/spec"
)

var fullPlan = plan.Plan{Ops: []plan.Op{
	{Path: "/", Class: plan.RootTmpfs},
	{Path: "/usr", Class: plan.SystemRO},
	{Path: "/bin", Class: plan.LinkTo, Target: "usr/bin"},
	{Path: "/tmp", Class: plan.ScratchTmpfs},
	{Path: "/srv/data", Class: plan.Readable},
	{Path: "/home/u/w", Class: plan.Writable},
	{Path: "/home/u/w/.git", Class: plan.Pin},
	{Path: "/proc", Class: plan.Proc},
	{Path: "/dev", Class: plan.Dev},
	{Path: "/home/u/w/.env", Class: plan.MaskFile},
	{Path: "/run/broker.sock", Class: plan.MountRO, Node: host.Node{Kind: host.Socket}},
	{Path: "/var/cache/x", Class: plan.MountRW, Node: host.Node{Kind: host.Dir}},
	{Path: "/dev/kvm", Class: plan.MountRW, Node: host.Node{Kind: host.CharDevice}},
	{Path: "/", Class: plan.Seal},
}}

func accessOf(s spec.Landlock, path string) spec.Access {
	for _, r := range s.Rules {
		if r.Path == path {
			return r.Access
		}
	}
	return 0
}

func TestRules(t *testing.T) {
	const none = spec.Access(0)
	for _, tt := range []struct {
		path             string
		jailed, degraded spec.Access
	}{
		{"/", spec.AccessRead, none},
		{"/usr", none, spec.AccessRead}, // below "/" in a jail
		{"/bin", none, none},            // a link's target has a rule
		{"/tmp", spec.AccessWrite, none},
		{"/srv/data", none, spec.AccessRead},
		{"/home/u/w", spec.AccessWrite, spec.AccessWrite},
		{"/home/u/w/.git", none, none},
		{"/home/u/w/.env", none, none},
		{"/run/broker.sock", spec.AccessConnect, spec.AccessConnect},
		{"/var/cache/x", spec.AccessWrite, spec.AccessWrite},
		{"/dev/kvm", spec.AccessDevice, spec.AccessDevice},
		{"/dev/null", spec.AccessDevice, spec.AccessDevice},
		{"/dev/tty", spec.AccessDevice, none},
		{"/dev/pts", spec.AccessDevice, none},
		{"/dev/shm", spec.AccessWrite, none},
		{"/dev", none, none},
		{"/proc", none, none},
		{"/proc/meminfo", none, spec.AccessRead},
		{"/opt/tool", none, spec.AccessRead}, // a need
	} {
		jailed := Rules(fullPlan, Options{ABI: 7, Jailed: true, Needs: []string{"/opt/tool"}})
		degraded := Rules(fullPlan, Options{ABI: 7, Needs: []string{"/opt/tool"}})
		if got := accessOf(jailed, tt.path); got != tt.jailed {
			t.Errorf("%s: %d in a jail, want %d", tt.path, got, tt.jailed)
		}
		if got := accessOf(degraded, tt.path); got != tt.degraded {
			t.Errorf("%s: %d without a jail, want %d", tt.path, got, tt.degraded)
		}
	}
}

// What a host-path scratch means does not depend on a mount.
func TestHostScratch(t *testing.T) {
	p := plan.Plan{Ops: []plan.Op{{Path: "/tmp", Class: plan.ScratchPath}}}
	for _, jailed := range []bool{true, false} {
		if got := accessOf(Rules(p, Options{ABI: 1, Jailed: jailed}), "/tmp"); got != spec.AccessWrite {
			t.Errorf("jailed %v: %d", jailed, got)
		}
	}
}

func TestNoLandlock(t *testing.T) {
	got := Rules(fullPlan, Options{Reason: "why", Jailed: true, DenyNet: true})
	if got.Enabled || got.Reason != "why" || got.Rules != nil {
		t.Errorf("%+v", got)
	}
}

func TestFlags(t *testing.T) {
	got := Rules(fullPlan, Options{ABI: 2, Jailed: true, DenyNet: true, NestedUserns: true})
	if !got.Enabled || !got.DenyNet || !got.Scope || !got.NestedUserns || got.NameLacking {
		t.Errorf("%+v", got)
	}
	got = Rules(fullPlan, Options{ABI: 2})
	if !got.Enabled || got.DenyNet || got.NestedUserns || !got.NameLacking {
		t.Errorf("%+v", got)
	}
}

// Sources that the host may lose between planning and start: base view and
// devices. A writable root that is gone must not be passed over.
func TestWhatMayBeMissing(t *testing.T) {
	for _, r := range Rules(fullPlan, Options{ABI: 7}).Rules {
		must := slices.Contains([]string{"/home/u/w", "/var/cache/x", "/dev/kvm", "/run/broker.sock"}, r.Path)
		if r.Optional == must {
			t.Errorf("%s: optional %v", r.Path, r.Optional)
		}
	}
}

func TestNoRuleTwice(t *testing.T) {
	p := plan.Plan{Ops: append(slices.Clone(fullPlan.Ops), fullPlan.Ops...)}
	once, twice := Rules(fullPlan, Options{ABI: 7}).Rules, Rules(p, Options{ABI: 7}).Rules
	if len(once) != len(twice) {
		t.Errorf("%d rules, %d of a repeated plan", len(once), len(twice))
	}
}
