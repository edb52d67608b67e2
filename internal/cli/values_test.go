package cli

import (
	"slices"
	"strings"
	"testing"

	"sandboxd/protocol"
)

func TestParseSize(t *testing.T) {
	good := map[string]uint64{
		"0": 0, "1": 1, "1b": 1, "512M": 512 << 20, "512m": 512 << 20, "1K": 1024, "1KB": 1024, "3KiB": 3072,
		"2G": 2 << 30, "1T": 1 << 40, "9223372036854775807": 1<<63 - 1,
	}
	for in, want := range good {
		if got, err := parseSize(in); err != nil || got != want {
			t.Errorf("%q: got %d, %v, want %d", in, got, err, want)
		}
	}
	for _, in := range []string{"", "M", "-1", "1.5G", "1X", "1MM", "1iB", "1 M", "9223372036854775808", "8388608T", "99999999999999999999"} {
		if got, err := parseSize(in); err == nil {
			t.Errorf("%q is accepted as %d", in, got)
		}
	}
}

func TestParseSeconds(t *testing.T) {
	for in, want := range map[string]uint64{"0": 0, "30": 30, "30s": 30, "1m30s": 90, "2h": 7200, "1000ms": 1, "1.5m": 90} {
		if got, err := parseSeconds(in); err != nil || got != want {
			t.Errorf("%q: got %d, %v, want %d", in, got, err, want)
		}
	}
	for _, in := range []string{"", "s", "100ms", "1.5s", "1m1ms", "-1s", "-1", "1d", "soon", "10000000000h"} {
		if got, err := parseSeconds(in); err == nil {
			t.Errorf("%q is accepted as %d", in, got)
		}
	}
}

func TestParseRun(t *testing.T) {
	o, err := parseRun(strings.Fields("--rw /a --rw=/b --ro /c --protect /d --mount /e:rw --mount /f --mount /g:x --net full --mem 1K --pids 5 " +
		"--wall 2m --cpu 3 --fsize 4K --output 0 --env A=b=c --env D --scratch /s --report --require-enforced --allow-degraded --bwrap /x --cgroup-base=/y -- cmd --rw"))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(o.rw, []string{"/a", "/b"}) || !slices.Equal(o.ro, []string{"/c"}) || !slices.Equal(o.protect, []string{"/d"}) || !slices.Equal(o.env, []string{"A=b=c", "D"}) {
		t.Errorf("lists: %+v", o)
	}
	mounts := []protocol.Mount{{Path: "/e", Access: "rw", Required: true}, {Path: "/f", Access: "ro", Required: true}, {Path: "/g:x", Access: "ro", Required: true}}
	if !slices.Equal(o.mounts, mounts) {
		t.Errorf("mounts: %+v", o.mounts)
	}
	want := protocol.Limits{CPUSeconds: 3, WallSeconds: 120, MemBytes: 1024, Pids: 5, FsizeBytes: 4096}
	if o.limits != want || o.net != protocol.NetFull || o.scratch != "/s" || !o.report || !o.requireEnforced || !o.allowDegraded || o.bwrap != "/x" || o.cgroupBase != "/y" {
		t.Errorf("got %+v", o)
	}
	if !slices.Equal(o.argv, []string{"cmd", "--rw"}) {
		t.Errorf("argv: %q", o.argv)
	}
}

func TestParseRunRefuses(t *testing.T) {
	cases := map[string]string{
		"":                               "no command",
		"--":                             "no command",
		"--report":                       "no command",
		"--mem":                          "--mem needs a value",
		"--mem lots -- x":                "expected a size",
		"--net proxy -- x":               "expected off or full",
		"--report=yes -- x":              "takes no value",
		"--cgroup-bas /x -- x":           "unknown flag --cgroup-bas",
		"-rw /x -- x":                    "do you mean --rw?",
		"--reprot -- x":                  "do you mean --report?",
		"--argv -- x":                    "run takes no --argv",
		"--wall 500ms -- x":              "whole seconds",
		"--policy p --preset fence -- x": "do not go together",
		"--rw= -- x":                     "is empty",
		"--env =x -- x":                  "expected NAME",
		"--mount :ro -- x":               "is empty",
	}
	for in, want := range cases {
		if o, err := parseRun(strings.Fields(in)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %+v, %v, want an error with %q", in, o, err, want)
		}
	}
	if o, err := parseRun([]string{"ls", "-l"}); err != nil || !slices.Equal(o.argv, []string{"ls", "-l"}) {
		t.Errorf("a command without --: %+v, %v", o, err)
	}
}
