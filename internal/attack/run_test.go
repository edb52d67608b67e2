//go:build linux

package attack

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"sandboxd/internal/testenv"
)

// answer is what an attack said of itself.
type answer struct {
	in  bool
	why string
}

// judge takes a batch's output apart. Every attack must have answered, and the end
// must have come: an attack that ends the batch is no attack that was kept out.
func (s *scene) judge(out string, names []string) map[string]answer {
	s.t.Helper()
	got := map[string]answer{}
	for _, line := range strings.Split(out, "\n") {
		if f := strings.SplitN(line, "\t", 3); len(f) == 3 {
			got[f[0]] = answer{f[1] == "in", f[2]}
		}
	}
	if !strings.Contains(out, "end\t"+s.Nonce+"\n") || len(got) != len(names) {
		s.t.Fatalf("%d of %d attacks answered:\n%s", len(got), len(names), out)
	}
	for _, name := range names {
		if a := byName(name); a.after != nil {
			err := a.after(s.called(name))
			if err != nil && got[name].in {
				got[name] = answer{false, "as seen from outside"}
			} else if err == nil {
				got[name] = answer{true, ""}
			}
		}
	}
	return got
}

// control runs the attacks without a jail.
func (s *scene) control(names []string) map[string]answer {
	s.t.Helper()
	path := filepath.Join(s.Base, "ws", "world.json")
	ok(s.t, s.save(path))
	cmd := testenv.As(s.t, exec.Command(s.program(), append([]string{"@batch", path}, names...)...), s.u)
	cmd.Dir = filepath.Join(s.Base, "ws")
	cmd.SysProcAttr = session(cmd.SysProcAttr)
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.t.Fatalf("the control: %v\n%s", err, out)
	}
	defer s.reap()
	return s.judge(string(out), names)
}

func session(a *syscall.SysProcAttr) *syscall.SysProcAttr {
	if a == nil {
		a = &syscall.SysProcAttr{}
	}
	a.Setsid = true
	return a
}

// reap ends what the control left behind, by its own number each.
func (s *scene) reap() {
	for pid := range testenv.Processes() {
		b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if strings.Contains(string(b), "@stay\x00stays-"+s.Nonce) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// jailed runs the same attacks in a jail.
func (s *scene) jailed(names []string) map[string]answer {
	s.t.Helper()
	s.Jailed = true
	path := filepath.Join(s.Base, "ws", "world.json")
	ok(s.t, s.save(path))
	h := start(s.t.(*testing.T), s.u, s.policy(names), nil)
	h.greet()
	if slices.Contains(h.hello.Features, "degraded") {
		// Without namespaces pid 1 is the machine's, and so is every mount.
		testenv.Skip(s.t, "bwrap", "bubblewrap does not work here")
	}
	r := h.run(2, s.start(append([]string{s.program(), "@batch", path}, names...)...))
	if r.exit == nil || r.exit.Code != 0 || r.exit.Cancelled {
		s.t.Fatalf("the jail: %+v %+v\n%s%s", r.exit, r.fail, r.stdout, r.stderr)
	}
	if again := h.run(3, s.start("/bin/true")); again.exit == nil || again.exit.Code != 0 {
		s.t.Errorf("the next execution: %+v %+v", again.exit, again.fail)
	}
	defer s.reap()
	if code := h.end(); code != 0 {
		s.t.Errorf("the helper's exit is %d", code)
	}
	return s.judge(r.stdout, names)
}

// tree is what is below the directories that no attack may change.
func (s *scene) tree() map[string]string {
	all := map[string]string{}
	for _, dir := range []string{"ro", "out", "victim", "bin"} {
		_ = filepath.WalkDir(filepath.Join(s.Base, dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				all[path] = err.Error()
				return nil
			}
			info, err := d.Info()
			if err != nil {
				return err
			}
			b := []byte{}
			if info.Mode().IsRegular() {
				b, _ = os.ReadFile(path)
			}
			all[path] = fmt.Sprint(info.Mode(), info.Sys().(*syscall.Stat_t).Nlink, info.ModTime().UnixNano(), len(b), string(b[:min(len(b), 512)]))
			return nil
		})
	}
	return all
}

// kept says what protected content is no longer as it was.
func (s *scene) kept(names []string) []string {
	var lost []string
	for _, name := range names {
		if !byName(name).files {
			continue
		}
		w := s.called(name)
		for _, path := range []string{w.env(), w.key(), w.netrc()} {
			if st, err := os.Stat(path); err != nil || w.reads(path) != nil || st.Mode() != 0o755 {
				lost = append(lost, path)
			}
		}
		for _, path := range []string{w.later(), w.ws("gone/later")} {
			if _, err := os.Lstat(path); err == nil {
				lost = append(lost, path)
			}
		}
	}
	return lost
}

func attacksOf(u testenv.User) []string {
	var names []string
	for _, a := range corpus {
		if !a.root || u.UID == 0 {
			names = append(names, a.name)
		}
	}
	return names
}

// Every attack of the corpus succeeds without a jail and is kept out by it; the host
// is afterwards what it was. An attack whose control fails is no proof and is said so.
func TestCorpus(t *testing.T) {
	shown := map[string]bool{}
	testenv.EachUser(t, func(t *testing.T, u testenv.User) {
		names := attacksOf(u)
		control := newScene(t, u, names).control(names)
		s := newScene(t, u, names)
		before := s.tree()
		jailed := s.jailed(names)
		var unproven []string
		for _, name := range names {
			a, c, j := byName(name), control[name], jailed[name]
			switch {
			case !c.in && a.needs == "" && !a.userns:
				t.Errorf("%s: the control fails: %s", name, c.why)
			case j.in && a.open == "":
				t.Errorf("%s: it got in (control: %v)", name, c.in)
			case !j.in && a.open != "" && c.in:
				t.Logf("%s: kept out here (%s), though the corpus says: %s", name, j.why, a.open)
			}
			if !c.in {
				unproven = append(unproven, fmt.Sprintf("%s (%s, needs %s)", name, c.why, a.needs))
			} else if a.open == "" {
				shown[name] = true
			}
			if testing.Verbose() {
				t.Logf("%-50s control %s, jail %s", name, c, j)
			}
		}
		t.Logf("%d attacks, %d without a control on this host: %s", len(names), len(unproven), strings.Join(unproven, "; "))
		after := s.tree()
		for path, was := range before {
			if is := after[path]; is != was && !strings.HasSuffix(path, "/ro/socket") {
				t.Errorf("changed by the jail: %s\n%s\n%s", path, was, is)
			}
		}
		if len(after) != len(before) {
			t.Errorf("%d files before, %d after", len(before), len(after))
		}
		if lost := s.kept(names); len(lost) > 0 {
			t.Errorf("no longer as protected: %s", lost)
		}
	})
	if os.Getuid() == 0 && os.Getenv(testenv.HostEnv) != "" && len(shown) < 150 {
		t.Errorf("%d attacks have a control that succeeds here, expected 150 and more", len(shown))
	}
	t.Logf("%d attacks are kept out, with a control that succeeds", len(shown))
}

func (a answer) String() string {
	if a.in {
		return "got in"
	}
	return "kept out " + a.why
}

// The names are a set, and each says its class and a subject.
func TestNames(t *testing.T) {
	seen := map[string]bool{}
	for _, a := range corpus {
		if seen[a.name] || strings.ContainsAny(a.name, "\t\n") || a.class == "" {
			t.Errorf("%q: twice, or no name, or no class", a.name)
		}
		seen[a.name] = true
	}
	if !slices.ContainsFunc(corpus, func(a attack) bool { return a.open != "" }) {
		t.Error("nothing gets in by design, and the documents say that something does")
	}
}
