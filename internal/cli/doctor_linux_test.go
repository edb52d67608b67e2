package cli

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"sandboxd/internal/doctor"
	"sandboxd/internal/testenv"
	"sandboxd/protocol"
)

func TestNested(t *testing.T) {
	for in, want := range map[string]bool{"         0          0 4294967295": false, "0 1000 1": true, "0 0 1\n1 100000 65536": true, "": false} {
		if got := nested(in); got != want {
			t.Errorf("%q: %v", in, got)
		}
	}
}

// On this host, whichever it is, doctor says what the helper's hello says, as each user.
func TestDoctorAgreesWithTheHelper(t *testing.T) {
	testenv.EachUser(t, func(t *testing.T, u testenv.User) {
		dir := workspaceOf(t, u, "w/")
		out, errs, code := sandboxdIn(t, u, dir, "doctor", "--json")
		var d diagnosis
		if err := json.Unmarshal([]byte(out), &d); err != nil {
			t.Fatalf("%v: %s%s", err, out, errs)
		}
		out, errs, _ = sandboxdIn(t, u, dir+"/w", "run", "--json", "--allow-degraded", "--", "true")
		first, _, _ := strings.Cut(out, "\n")
		var start startEvent
		if err := json.Unmarshal([]byte(first), &start); err != nil {
			t.Fatalf("%v: %s%s", err, out, errs)
		}
		state := map[string]doctor.State{}
		for _, l := range d.Layers {
			state[l.Layer] = l.State
		}
		there := func(layer string) bool { return state[layer] == doctor.OK || state[layer] == doctor.Partial }
		for layer, feature := range map[string]string{"bwrap": protocol.TagBwrap, "landlock": protocol.TagLandlock, "seccomp": protocol.FeatureSeccomp, "cgroup-v2": protocol.TagCgroupV2} {
			if there(layer) != slices.Contains(start.Features, feature) {
				t.Errorf("doctor: %s is %s; hello: %q", layer, state[layer], start.Features)
			}
		}
		if d.Jailed != (code == 0) || d.Jailed != there("bwrap") {
			t.Errorf("exit code %d beside %+v", code, d)
		}
	})
}
