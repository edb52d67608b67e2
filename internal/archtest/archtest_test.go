package archtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

var platforms = []string{"linux", "darwin"}

// list asks go list for the packages of this module, or for what they depend on.
func list(t *testing.T, goos string, args ...string) []pkg {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list", "-e", "-json=ImportPath,Imports"}, args...)...)
	cmd.Dir = "../.."
	cmd.Env = append(os.Environ(), "GOOS="+goos, "CGO_ENABLED=0")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list for %s: %v\n%s", goos, err, &stderr)
	}
	return decode(t, out)
}

func decode(t *testing.T, out []byte) []pkg {
	t.Helper()
	var pkgs []pkg
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		switch err := dec.Decode(&p); {
		case errors.Is(err, io.EOF):
			return pkgs
		case err != nil:
			t.Fatal(err)
		}
		pkgs = append(pkgs, p)
	}
}

func TestArrowsPointOneWay(t *testing.T) {
	for _, goos := range platforms {
		t.Run(goos, func(t *testing.T) {
			pkgs := list(t, goos, "./...")
			if len(pkgs) < 10 || !slices.ContainsFunc(pkgs, func(p pkg) bool { return p.ImportPath == module+"internal/plan" }) {
				t.Fatalf("go list found %d packages, not the project", len(pkgs))
			}
			for _, b := range breaches(pkgs, rules) {
				t.Error(b)
			}
		})
	}
}

// Stage 2 runs once per command: it links neither the frame loop nor the client,
// directly or through others, and no JSON, reflection-driven msgpack or net stack.
func TestStage2StaysSmall(t *testing.T) {
	forbidden := []string{
		module + "internal/server", module + "internal/cli", module + "internal/jail", module + "protocol/broker",
		"encoding/json", "net", "net/http", "github.com/elastic/go-seccomp-bpf", "golang.org/x/net/bpf",
	}
	for _, goos := range platforms {
		deps := list(t, goos, "-deps", "./internal/stage2")
		if len(deps) < 5 {
			t.Fatalf("%s: go list found %d packages, not stage 2's", goos, len(deps))
		}
		for _, p := range deps {
			if slices.Contains(forbidden, p.ImportPath) {
				t.Errorf("%s: internal/stage2 depends on %s", goos, p.ImportPath)
			}
		}
	}
}

// The D-Bus, eBPF and protobuf behind cgroups/v3's cgroup2 stay out of the binary.
func TestBinaryLeavesHeavyModulesOut(t *testing.T) {
	heavy := []string{"github.com/containerd/cgroups/v3/cgroup2", "github.com/godbus", "github.com/cilium/ebpf", "google.golang.org/protobuf", "net/http"}
	for _, goos := range platforms {
		for _, p := range list(t, goos, "-deps", "./cmd/sandboxd") {
			if slices.ContainsFunc(heavy, func(h string) bool { return p.ImportPath == h || strings.HasPrefix(p.ImportPath, h+"/") }) {
				t.Errorf("%s: cmd/sandboxd depends on %s", goos, p.ImportPath)
			}
		}
	}
}

// Every kind of breach must be found, or the tests above prove nothing.
func TestBreachesAreFound(t *testing.T) {
	graph := []pkg{
		{module + "internal/plan", []string{"sort", "os"}},
		{module + "internal/policy", []string{"net/netip", "net/url"}},
		{module + "internal/mpack", []string{"strings", module + "protocol"}},
		{module + "internal/stage2", []string{module + "internal/server", module + "internal/stage2/spec"}},
		{module + "internal/newcomer", nil},
		{module + "internal/host", []string{"path"}},
		{module + "internal/server", []string{"os", module + "internal/host/probe"}},
	}
	want := []string{
		"internal/mpack imports sandboxd/protocol:",
		"internal/newcomer has no rule",
		"internal/plan imports os:",
		"internal/policy imports net/url:",
		"internal/stage2 imports sandboxd/internal/server:",
	}
	got := breaches(graph, rules)
	if len(got) != len(want) {
		t.Fatalf("got %d breaches, want %d: %q", len(got), len(want), got)
	}
	for i := range want {
		if !strings.HasPrefix(got[i], want[i]) {
			t.Errorf("breach %d: got %q, want %q...", i, got[i], want[i])
		}
	}
}

// The table itself must point one way: a cycle would make it say nothing.
func TestRulesHaveNoCycle(t *testing.T) {
	state := map[string]int{}
	var visit func(name string, path []string)
	visit = func(name string, path []string) {
		if state[name] == 2 {
			return
		}
		if state[name] == 1 {
			t.Fatalf("a cycle: %s", strings.Join(append(path, name), " -> "))
		}
		state[name] = 1
		for other := range rules {
			if slices.ContainsFunc(rules[name].may, func(m string) bool { return matches(m, other) }) {
				visit(other, append(path, name))
			}
		}
		state[name] = 2
	}
	for name := range rules {
		visit(name, nil)
	}
}
