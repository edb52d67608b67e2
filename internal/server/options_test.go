package server

import (
	"slices"
	"strings"
	"testing"

	"sandboxd/internal/jail"
)

// A flag that is not understood to the letter starts no server: what it would have
// narrowed stays open otherwise.
func TestParseOptions(t *testing.T) {
	o, err := ParseOptions(strings.Fields("--bwrap /b --cgroup-base /c --mutable /m --mutable=/n --require-enforced --accept-skip landlock --accept-skip seccomp-net --on-mask-loss report --standby off"))
	if err != nil || o.Bwrap != "/b" || o.CgroupBase != "/c" || !slices.Equal(o.Mutable, []string{"/m", "/n"}) || !o.RequireEnforced ||
		!slices.Equal(o.AcceptSkip, []string{"landlock", "seccomp-net"}) || o.OnMaskLoss != jail.MaskLossReport || !o.NoStandby || o.AllowUnenforced || o.AllowNestedUserns {
		t.Errorf("got %+v, %v", o, err)
	}
	if o, err = ParseOptions([]string{"--on-mask-loss=stop", "--standby", "on"}); err != nil || o.OnMaskLoss != jail.MaskLossStop || o.NoStandby {
		t.Errorf("got %+v, %v", o, err)
	}
	for args, want := range map[string]string{
		"--cgroup-bas /c":                "cgroup-bas",
		"--require-enforced=perhaps":     "perhaps",
		"--require-enforced no":          `unknown argument "no"`,
		"--bwrap":                        "needs an argument",
		"--bwrap bwrap":                  `"bwrap" is not an absolute path`,
		"--cgroup-base ./c":              `"./c" is not an absolute path`,
		"--mutable /m --mutable n":       `"n" is not an absolute path`,
		"--accept-skip landlok":          `--accept-skip "landlok" is no layer's name`,
		"--accept-skip landlock,seccomp": `"landlock,seccomp" is no layer's name`,
		"--on-mask-loss ignore":          "expected stop or report",
		"--standby true":                 "it is on or off",
	} {
		if o, err := ParseOptions(strings.Fields(args)); err == nil || IsHelp(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %+v, %v", args, o, err)
		}
	}
	if _, err := ParseOptions([]string{"--help"}); !IsHelp(err) {
		t.Errorf("help: %v", err)
	}
}
