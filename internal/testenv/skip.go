package testenv

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

const (
	// HostEnv names the kind of host that a run claims to be, such as "ci-linux".
	// What that kind promises is in testdata/skips.txt; without it nothing is
	// promised and every skip is allowed.
	HostEnv = "SANDBOXD_TEST_HOST"
	// SkipLogEnv names the file to which every skip is appended, for the comparison
	// of a run's skips with testdata/skips.txt.
	SkipLogEnv = "SANDBOXD_TEST_SKIPLOG"
	// FenceEnv set to "1" says that a pass without this system's jail proves nothing.
	FenceEnv = "SANDBOXD_FENCE_REQUIRED"
)

// jails are the features without which there is no jail, by GOOS.
var jails = map[string][]string{"linux": {"bwrap", "bubblewrap"}, "darwin": {"seatbelt"}}

// Skip skips a test for the lack of a feature of the host ("landlock", "cgroup-v2",
// "root", "user", "tool:node"). It is fatal where testdata/skips.txt does not list
// the feature for this kind of host: what a host promises must not be skipped. The jail
// itself is promised by FenceEnv.
func Skip(tb testing.TB, feature, reason string) {
	tb.Helper()
	if os.Getenv(FenceEnv) == "1" && slices.Contains(jails[runtime.GOOS], feature) {
		tb.Fatalf("%s is missing (%s), and %s=1 demands the jail", feature, reason, FenceEnv)
	}
	if host := os.Getenv(HostEnv); host != "" {
		allowed, err := AllowedSkips(filepath.Join(Root(tb), "testdata", "skips.txt"), host)
		if err != nil {
			tb.Fatal(err)
		}
		if !slices.Contains(allowed, feature) {
			tb.Fatalf("%s is missing (%s), but a %s host promises it: see testdata/skips.txt", feature, reason, host)
		}
	}
	record(tb, feature)
	tb.Skipf("NOT RUN, no %s: %s", feature, reason)
}

func record(tb testing.TB, feature string) {
	path := os.Getenv(SkipLogEnv)
	if path == "" {
		return
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o666)
	if err != nil {
		tb.Fatalf("cannot record a skip: %v", err)
	}
	defer f.Close()
	fmt.Fprintf(f, "%s\t%s\n", feature, tb.Name())
}

// AllowedSkips reads the features that a kind of host may lack. A line is
// "HOST FEATURE REASON..."; a "?" behind the feature says that only some hosts of the kind
// lack it, which scripts/test reads; "#" starts a comment. A host that the file does not know
// is an error: a misspelt one would allow nothing, or everything.
func AllowedSkips(path, host string) ([]string, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read the list of skips: %w", err)
	}
	var features []string
	known := false
	for n, line := range strings.Split(string(b), "\n") {
		line, _, _ = strings.Cut(line, "#")
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		if len(f) < 3 {
			return nil, fmt.Errorf("%s:%d: expected HOST FEATURE REASON", path, n+1)
		}
		if f[0] == host {
			known = true
			if f[1] != "-" { // "HOST - REASON" declares a host that skips nothing
				features = append(features, strings.TrimSuffix(f[1], "?"))
			}
		}
	}
	if !known {
		return nil, fmt.Errorf("%s does not know the kind of host %q", path, host)
	}
	return features, nil
}
