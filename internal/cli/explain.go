package cli

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"sandboxd/internal/env"
	"sandboxd/internal/explain"
	"sandboxd/internal/host"
	"sandboxd/internal/host/probe"
	"sandboxd/internal/plan"
	"sandboxd/internal/policy"
	"sandboxd/internal/roots"
	"sandboxd/protocol"
)

// explainCommand is `sandboxd explain`. It looks at the host and plans, and starts
// nothing.
func explainCommand(args []string, s System) int {
	p := parser{command: "explain", use: forExplain, o: defaults()}
	rest, err := p.anywhere(args)
	p.o.argv = rest
	if err == nil {
		err = p.o.contradiction()
	}
	if err != nil {
		return reject(s, "explain", err)
	}
	t, err := newTask(p.o, s)
	if err != nil {
		return complain(s, exitFailed, err)
	}
	e := explainer{s: s}
	bwrap := t.o.bwrap
	if bwrap != "" {
		bwrap = absolute(t.cwd, bwrap)
	}
	if e.facts, err = probe.Look(probe.Options{Bwrap: bwrap}); err != nil {
		return complain(s, exitFailed, err)
	}
	e.asked, err = e.physical(t, rest)
	if err != nil {
		return complain(s, exitFailed, err)
	}
	sc, err := e.scene(t)
	if err != nil {
		return e.refused(t, err)
	}
	switch {
	case t.o.showArgv:
		err = e.printArgv(t, sc)
	case t.o.json:
		err = e.printJSON(t, sc)
	case len(e.asked) > 0:
		e.printPaths(t, sc)
	default:
		e.printView(t, sc)
	}
	if err != nil {
		return complain(s, exitFailed, err)
	}
	return 0
}

// explainer answers for one policy and the changes that are tried on it.
type explainer struct {
	s     System
	facts host.Facts
	asked []asked
}

// asked is a path to explain.
type asked struct {
	spelled  string // as typed
	path     string // absolute
	physical string // with its links followed, as far as it exists
}

// notes adds to an answer what only the spelling tells: who types a command's name means
// the program.
func (q asked) notes(a explain.Answer) []string {
	if a.Missing == "" || strings.Contains(q.spelled, "/") {
		return a.Notes
	}
	program, err := exec.LookPath(q.spelled)
	if err != nil {
		return a.Notes
	}
	return append(slices.Clone(a.Notes), "explain takes paths; the program of that name is "+program)
}

// physical resolves what was asked for by itself, so that no link on the way can be
// taken for a planted one: a person asks about what is there.
func (e explainer) physical(t task, paths []string) ([]asked, error) {
	var out []asked
	for _, spelled := range paths {
		if spelled == "" || strings.ContainsRune(spelled, 0) {
			return nil, fmt.Errorf("cannot explain %q: it is no path", spelled)
		}
		if err := unexpanded(spelled); err != nil {
			return nil, fmt.Errorf("cannot explain it: %w", err)
		}
		path := absolute(t.cwd, spelled)
		if _, err := os.Stat(path); errors.Is(err, syscall.ELOOP) {
			return nil, fmt.Errorf("cannot explain %q: its links lead in a circle, so it names nothing", spelled)
		}
		real, rest := path, ""
		for {
			found, err := filepath.EvalSymlinks(real)
			if err == nil {
				out = append(out, asked{spelled, path, filepath.Join(found, rest)})
				break
			}
			if real == "/" {
				out = append(out, asked{spelled, path, path})
				break
			}
			real, rest = filepath.Dir(real), filepath.Join(filepath.Base(real), rest)
		}
	}
	return out, nil
}

// scene surveys the host for a policy and plans it. The error is a *plan.Refusal, or
// says why the host could not be looked at.
func (e explainer) scene(t task) (explain.Scene, error) { return e.sceneWith(t, "") }

// sceneWith takes one path for there, as a directory of the caller's, though it is not.
func (e explainer) sceneWith(t task, pretend string) (explain.Scene, error) {
	f := e.facts
	f.Cwd = t.cwd
	optional := env.Dirs(t.environment(e.s.Environ, nil), getenv(e.s.Environ, "PATH"))
	for _, a := range e.asked {
		optional = append(optional, a.physical)
	}
	reached, err := roots.Survey(plan.Paths(t.policy, f), roots.Writability{
		Paths: policy.Writable(t.policy), Shared: roots.SharedDirs(nil), Optional: append(optional, plan.Sockets(f)...), Private: &roots.Private{},
		Narrow: plan.Narrow(t.policy), Label: label(t.policy),
	})
	if err != nil {
		return explain.Scene{}, err
	}
	defer reached.Close()
	f.Layout, f.Aliases, f.Kernel = reached.Layout(), reached.Aliases(), reached.Kernel()
	f.Private, f.PrivateMore = reached.Private()
	if pretend != "" {
		f.Layout = explain.Pretend(f.Layout, pretend, f)
	}
	groups, _ := os.Getgroups() // none on a system that has none
	sc, err := explain.New(t.policy, f, groups)
	sc.ReadOnly = mountedReadOnly
	return sc, err
}

// label names the entry that a path stands in, for refusals.
func label(p protocol.Policy) func(string) string {
	return func(path string) string {
		for list, n := range lists(p) {
			for i := range n {
				if entry(p, list, i) == path {
					return fmt.Sprintf("%s[%d]", list, i)
				}
			}
		}
		if path == p.Scratch {
			return "scratch"
		}
		return ""
	}
}

// refused prints why the policy cannot be honoured here, and who put the entry there.
func (e explainer) refused(t task, err error) int {
	var r *plan.Refusal
	if errors.As(err, &r) {
		err = t.attribute(err, r.List)
	}
	if t.o.json {
		e.printRefusal(t, err)
		return exitFailed
	}
	return complain(e.s, exitFailed, err)
}

// keyOf reads "mounts[2]".
func keyOf(name string) entryKey {
	list, rest, ok := strings.Cut(name, "[")
	if !ok {
		return entryKey{name, -1}
	}
	n, err := parseNumber(strings.TrimSuffix(rest, "]"))
	if err != nil {
		return entryKey{name, -1}
	}
	return entryKey{list, int(n)}
}
