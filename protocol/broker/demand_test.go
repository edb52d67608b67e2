package broker

import (
	"errors"
	"runtime"
	"slices"
	"testing"

	"sandboxd/internal/testenv"
	"sandboxd/protocol"
)

// complete is a report that satisfies a policy.
func complete(p protocol.Policy) []string {
	return protocol.Required(p, runtime.GOOS, func(tag string) bool { return tag == protocol.TagLandlock })
}

func TestDemand(t *testing.T) {
	if runtime.GOOS != "linux" {
		testenv.Skip(t, "linux", "the cases are Linux's")
	}
	off := protocol.Policy{Network: protocol.Network{Mode: protocol.NetOff}, Scratch: protocol.ScratchTmpfs}
	limited := &protocol.Limits{Pids: 10}
	all := complete(off)
	without := func(tag string) []string {
		return slices.DeleteFunc(slices.Clone(all), func(s string) bool { return s == tag })
	}
	cases := []struct {
		name    string
		demand  Demand
		accept  []string
		limits  *protocol.Limits
		report  []string
		bad     bool
		missing string
	}{
		{"everything there", Full, nil, nil, all, false, ""},
		{"nothing demanded", Any, nil, nil, []string{}, false, ""},
		{"an empty report", Full, nil, nil, []string{}, false, protocol.TagBwrap},
		{"a layer missing", Full, nil, nil, without(protocol.TagSeccompNet), false, protocol.TagSeccompNet},
		{"a layer skipped", Full, nil, nil, append(without(protocol.TagLandlock), "skip:landlock: none"), false, protocol.TagLandlock},
		{"a skip accepted", Full, []string{protocol.TagLandlock}, nil, append(without(protocol.TagLandlock), "skip:landlock: none"), false, ""},
		{"the command's own limits count", Full, nil, limited, all, false, protocol.TagCgroupV2},
		{"degraded", Full, nil, nil, all, true, "the report says degraded"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			h := start(t, Options{Policy: &off, Demand: c.demand, Accept: c.accept}, func(f *fake) {
				id, _ := f.begin()
				f.say(id, protocol.ExecExit{Code: 7, Enforcement: c.report, Degraded: c.bad})
				f.drain()
			})
			res, err := h.Exec(t.Context(), Command{Argv: argv, Cwd: "/", Limits: c.limits})
			var lacking *NotEnforcedError
			switch {
			case c.missing == "" && err != nil:
				t.Errorf("got %v", err)
			case c.missing != "" && (!errors.Is(err, ErrNotEnforced) || !errors.As(err, &lacking)):
				t.Errorf("got %v, want ErrNotEnforced", err)
			case c.missing != "" && (!slices.Contains(lacking.Missing, c.missing) || !lacking.Ran):
				t.Errorf("got %+v, want %s in it", lacking, c.missing)
			}
			if res.Code != 7 {
				t.Errorf("the result is lost: %+v", res)
			}
		})
	}
}

func TestDemandRefusesADegradedHelperBeforehand(t *testing.T) {
	for _, feature := range []string{protocol.FeatureDegraded, protocol.FeaturePlatformUnsupported} {
		h, _, err := script(t, Options{Demand: Full}, []string{feature}, func(f *fake) {
			if fr := f.next(); fr.Kind != "" {
				t.Errorf("%s: the helper got %q", feature, fr.Kind)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		_, err = h.Exec(t.Context(), Command{Argv: argv, Cwd: "/"})
		var lacking *NotEnforcedError
		if !errors.As(err, &lacking) || lacking.Ran {
			t.Errorf("%s: got %v", feature, err)
		}
		h.Close()
	}
}
