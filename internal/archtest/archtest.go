// Package archtest holds the import graph against the design: which packages may
// import which, and which are pure. It looks at imports only; a pure package could
// still be handed an effect as a value.
package archtest

import (
	"fmt"
	"slices"
	"strings"
)

// module is the path that all packages of this project begin with.
const module = "sandboxd/"

// impure are the packages of the standard library that have effects; a pure package
// imports neither them nor what is below them.
var impure = []string{"os", "net", "syscall", "time", "golang.org/x/sys", "io/ioutil"}

// harmless are values that live below an impure package.
var harmless = []string{"net/netip"}

// rule says what one package may import of this project.
type rule struct {
	pure bool
	may  []string // without the module's path; "X/..." means X and what is below it
}

// rules is the design's one-way flow. A package that is missing here fails the test,
// so that a new one is placed before it is used.
var rules = map[string]rule{
	"protocol":            {may: []string{"internal/mpack"}},
	"protocol/broker":     {may: []string{"protocol"}},
	"protocol/fixtures":   {may: []string{"protocol", "internal/policy", "internal/mpack"}},
	"internal/mpack":      {pure: true},
	"internal/policy":     {pure: true, may: []string{"internal/mpack", "protocol"}},
	"internal/env":        {pure: true, may: []string{"internal/host"}},
	"internal/host":       {pure: true},
	"internal/host/probe": {may: []string{"internal/host", "internal/bwrap", "internal/landlock", "internal/plan", "internal/procfs", "internal/seatbelt", "protocol"}},
	// spec is the pure vocabulary of what stage 2 must find; a plan lists it.
	"internal/plan":                {pure: true, may: []string{"internal/host", "internal/stage2/spec", "protocol"}},
	"internal/policy/jsonfile":     {pure: true, may: []string{"internal/mpack", "internal/policy", "protocol"}},
	"internal/bwrap":               {pure: true, may: []string{"internal/host", "internal/plan"}},
	"internal/seatbelt":            {pure: true, may: []string{"internal/host", "internal/plan"}},
	"internal/seatbelt/eval":       {pure: true},
	"internal/proctrack":           {},
	"internal/procfs":              {pure: true},
	"internal/landlock":            {may: []string{"internal/host", "internal/plan", "internal/stage2/spec"}},
	"internal/seccomp":             {may: []string{"internal/stage2/spec"}},
	"internal/ready":               {},
	"internal/leash":               {},
	"internal/roots":               {may: []string{"internal/host", "internal/plan", "internal/procfs", "internal/ready"}},
	"internal/fence":               {may: []string{"internal/fence/repos", "internal/host", "internal/plan", "internal/roots", "protocol"}},
	"internal/fence/repos":         {},
	"internal/gitidentity":         {may: []string{"internal/host", "internal/plan", "internal/policy", "internal/roots", "protocol"}},
	"internal/cgroup":              {may: []string{"internal/procfs", "protocol"}},
	"internal/stage2/spec":         {pure: true, may: []string{"internal/host", "internal/mpack"}},
	"internal/stage2":              {may: []string{"internal/stage2/spec", "internal/host", "internal/landlock", "internal/procfs", "internal/seccomp"}},
	"internal/stage2/carried":      {pure: true},
	"internal/report":              {pure: true, may: []string{"internal/host", "internal/plan", "internal/stage2/spec", "protocol"}},
	"internal/jail":                {may: []string{"protocol", "internal/bwrap", "internal/cgroup", "internal/env", "internal/fence/repos", "internal/host/...", "internal/landlock", "internal/leash", "internal/plan", "internal/policy", "internal/procfs", "internal/proctrack", "internal/ready", "internal/report", "internal/roots", "internal/seatbelt", "internal/seccomp", "internal/stage2/carried", "internal/stage2/spec"}},
	"internal/server":              {may: []string{"protocol", "internal/host/...", "internal/jail", "internal/plan", "internal/policy", "internal/ready", "internal/report", "internal/roots"}},
	"internal/selftest":            {may: []string{"protocol/...", "internal/host/...", "internal/report", "internal/selftest/witness"}},
	"internal/selftest/witness":    {},
	"internal/doctor":              {pure: true, may: []string{"internal/host"}},
	"internal/explain":             {pure: true, may: []string{"internal/host", "internal/plan", "protocol"}},
	"internal/cli":                 {may: []string{"protocol/...", "internal/cgroup", "internal/doctor", "internal/env", "internal/explain", "internal/fence", "internal/gitidentity", "internal/host/...", "internal/plan", "internal/policy/...", "internal/procfs", "internal/bwrap", "internal/seatbelt", "internal/roots", "internal/selftest/...", "internal/stage2/spec"}},
	"cmd/sandboxd":                 {may: []string{"internal/cli", "internal/leash", "internal/server", "internal/stage2"}},
	"cmd/sandboxd-stage2":          {may: []string{"internal/stage2"}},
	"internal/testenv":             {may: []string{"internal/procfs"}},
	"internal/archtest":            {},
	"internal/attack":              {},
	"internal/e2e":                 {},
	"internal/bench":               {},
	"internal/seccomp/gen":         {may: []string{"internal/seccomp"}},
	"internal/seccomp/seccomptest": {may: []string{"internal/seccomp", "internal/stage2/spec"}},
	"protocol/internal/gentags":    {},
}

// pkg is what `go list` says of a package.
type pkg struct {
	ImportPath string
	Imports    []string
}

// breaches lists what in the graph the rules do not allow. Generators and test
// programs below a package (internal/NAME/internal/..., main packages of tests) are
// judged by their own entry.
func breaches(pkgs []pkg, rules map[string]rule) []string {
	var found []string
	for _, p := range pkgs {
		name := strings.TrimPrefix(p.ImportPath, module)
		r, ok := rules[name]
		if !ok {
			found = append(found, fmt.Sprintf("%s has no rule in internal/archtest; say there what it may import", name))
			continue
		}
		for _, imp := range p.Imports {
			if why := r.breach(imp); why != "" {
				found = append(found, fmt.Sprintf("%s imports %s: %s", name, imp, why))
			}
		}
	}
	slices.Sort(found)
	return found
}

// breach says why the rule does not allow the import, or "".
func (r rule) breach(imp string) string {
	if own, ok := strings.CutPrefix(imp, module); ok {
		if !slices.ContainsFunc(r.may, func(m string) bool { return matches(m, own) }) {
			return "arrows point one way, and this is not one of them"
		}
		return ""
	}
	if slices.Contains(harmless, imp) {
		return ""
	}
	if r.pure && slices.ContainsFunc(impure, func(i string) bool { return imp == i || strings.HasPrefix(imp, i+"/") }) {
		return "the package is pure"
	}
	return ""
}

func matches(pattern, name string) bool {
	if tree, ok := strings.CutSuffix(pattern, "/..."); ok {
		return name == tree || strings.HasPrefix(name, tree+"/")
	}
	return pattern == name
}
