package roots

import (
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandboxd/internal/host"
)

// renewable is a tree with one of everything that a survey looks at, and its survey.
type renewable struct {
	dir    string
	paths  []string
	w      Writability
	before *Reached
}

func newRenewable(t *testing.T) *renewable {
	dir := testDir(t)
	build(t, dir, "ws/sub/f", "ws/.env", "ro/f", "out/other", "far/f", "empty/")
	must(t, os.Symlink("../far", filepath.Join(dir, "ro", "l")))
	must(t, os.Symlink("far", filepath.Join(dir, "l")))
	at := func(name string) string { return filepath.Join(dir, name) }
	x := &renewable{dir: dir, paths: []string{at("ro/f"), at("ro/l/f"), at("l"), at("missing/deep"), at("ro/none"), at("ws/.env"), at("ws/sub"), at("empty")},
		w: Writability{Paths: []string{at("ws")}, Narrow: []string{at("ws/.env"), at("empty"), at("ro/none")}, Memory: &Memory{}}}
	time.Sleep(3 * tick) // what changed just now is not vouched for
	for range 2 {        // the first one teaches the memory
		if x.before != nil {
			x.before.Close()
		}
		x.before = x.survey(t)
		x.w.Memory.Add(x.before)
	}
	return x
}

func (x *renewable) survey(t *testing.T) *Reached {
	t.Helper()
	r, err := Survey(x.paths, x.w)
	must(t, err)
	t.Cleanup(func() { r.Close() })
	return r
}

func (x *renewable) sh(t *testing.T, script string) {
	t.Helper()
	cmd := exec.Command("sh", "-c", script)
	cmd.Dir = x.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v, %s", script, err, out)
	}
}

// Each change of what a survey met is noticed, and what it did not ask for is none.
func TestRenew(t *testing.T) {
	for script, same := range map[string]bool{
		"true":                                        true,
		"echo more >>ws/sub/f; echo x >ws/new":        true,
		"mkdir ws/d ws/sub/d far/d; rmdir ws/d":       true,
		"echo x >>ro/f":                               true, // what is in a file is nobody's concern
		"mv ws/sub ws/x; mkdir ws/sub":                false,
		"mv far/f far/g; mv far/g far/f":              true,
		"mv ro/f ro/g; mv ro/g ro/f":                  false, // as of empty: none might have been made and marked
		"rm ro/f":                                     false,
		"rm ro/f; mkdir ro/f":                         false,
		"chmod 600 ro/f":                              false,
		"chmod 700 ro":                                false,
		"ln ro/f out/f":                               false, // a second name
		"mkdir missing":                               false,
		"touch ro/none":                               false,
		"rm ro/l; ln -s ../out ro/l":                  false,
		"rm ro/l; ln -s ../fa_ ro/l":                  false,
		"mv far gone; ln -s gone far":                 false,
		"mv l m; ln -s far l":                         false,
		"touch empty/f; rm empty/f":                   false, // it may be a placeholder by now
		"chmod 0 ws/sub; chmod 755 ws/sub":            true,
		"mv ws/.env x; echo y >ws/.env":               false,
		"mv ws old; mkdir ws; mv old/sub old/.env ws": false,
	} {
		t.Run(script, func(t *testing.T) {
			x := newRenewable(t)
			x.sh(t, script)
			again := x.before.Renew(x.w)
			if (again != nil) != same {
				t.Fatalf("renewed: %v", again != nil)
			}
		})
	}
}

// What an earlier policy let a command write is no part of the file system, and counts.
func TestRenewWithAnotherMemory(t *testing.T) {
	x := newRenewable(t)
	if x.before.Renew(x.w) == nil {
		t.Fatal("nothing changed")
	}
	other, err := Survey(nil, Writability{Paths: []string{filepath.Join(x.dir, "ro")}, Memory: x.w.Memory})
	must(t, err)
	defer other.Close()
	x.w.Memory.Add(x.before)
	if x.before.Renew(x.w) == nil {
		t.Fatal("the memory holds what it held")
	}
	x.w.Memory.Add(other)
	if x.before.Renew(x.w) != nil {
		t.Error("renewed, with a link that a command can have made since")
	}
}

// What changed just now can change again without showing it.
func TestRenewOfWhatIsNew(t *testing.T) {
	x := newRenewable(t)
	for range 100 {
		began := time.Now()
		must(t, os.WriteFile(filepath.Join(x.dir, "empty", "f"), nil, 0o644)) // no shell is that quick everywhere
		must(t, os.Remove(filepath.Join(x.dir, "empty", "f")))
		r := x.survey(t)
		if time.Since(began) > tick {
			continue
		}
		if r.Renew(x.w) != nil {
			t.Error("renewed")
		}
		return
	}
	t.Error("this machine is too slow for one look within a tick")
}

// Not every file system has times as fine as the clock's.
func TestAged(t *testing.T) {
	for _, c := range []struct {
		changed, now time.Time
		want         bool
	}{
		{time.Unix(10, 5e6), time.Unix(10, 5e6), false},
		{time.Unix(10, 5e6), time.Unix(10, 24e6), false},
		{time.Unix(10, 5e6), time.Unix(10, 26e6), true},
		{time.Unix(10, 0), time.Unix(11, 5e8), false},
		{time.Unix(10, 0), time.Unix(13, 1), true},
		{time.Unix(10, 5e6), time.Unix(9, 0), true}, // the clock was set back
	} {
		if got := aged(c.changed, c.now); got != c.want {
			t.Errorf("changed %v, now %v: %v", c.changed, c.now, got)
		}
	}
}

// A link that was made anew can have the number of the one before.
func TestRenewLooksWhereALinkLeads(t *testing.T) {
	x := newRenewable(t)
	link := x.before.layout[filepath.Join(x.dir, "l")]
	if x.before.Renew(x.w) == nil || link.Target != "far" {
		t.Fatalf("got %+v", link)
	}
	for _, target := range []string{"fa", "farther", "out"} {
		link.Target = target
		x.before.layout[filepath.Join(x.dir, "l")] = link
		if x.before.Renew(x.w) != nil {
			t.Errorf("renewed, though it led to %q", target)
		}
	}
}

// A renewed survey gives what a new one gives, holds nothing before it is asked, and then
// the very objects.
func TestRenewedIsTheSame(t *testing.T) {
	x := newRenewable(t)
	x.before.Close()
	again := x.before.Renew(x.w)
	if again == nil {
		t.Fatal("nothing changed")
	}
	defer again.Close()
	sameReached(t, again, x.survey(t))
	if len(again.kept)+len(again.dirs) != 0 {
		t.Errorf("it holds %v %v", again.kept, again.dirs)
	}
	f, err := again.Dup(filepath.Join(x.dir, "ro/f"))
	must(t, err)
	defer f.Close()
	var st unix.Stat_t
	must(t, unix.Fstat(int(f.Fd()), &st))
	if nodeFrom(&st).ID != again.layout[filepath.Join(x.dir, "ro/f")].ID {
		t.Error("it gives another file")
	}
	if f, err := again.Dup("/"); err != nil {
		t.Error(err)
	} else {
		f.Close()
	}
	if _, ok := again.Tree(filepath.Join(x.dir, "far/f")); !ok {
		t.Error("it has lost the mounts")
	}
	x.sh(t, "mv ro/f ro/g; echo >ro/f")
	if _, err := again.Dup(filepath.Join(x.dir, "ro/f")); err == nil {
		t.Error("it gives a file that came since")
	}
	again.Close()
	if _, err := again.Dup(filepath.Join(x.dir, "far/f")); err == nil {
		t.Error("it gives something after its end")
	}
}

func sameReached(t *testing.T, got, want *Reached) {
	t.Helper()
	plain := func(l host.Layout) host.Layout {
		out := maps.Clone(l)
		for path, n := range out {
			if n.Kind == host.Dir { // changes with what comes and goes in it, and nobody asks
				n.Nlink = 0
				out[path] = n
			}
		}
		return out
	}
	if g, w := plain(got.layout), plain(want.layout); !maps.Equal(g, w) {
		t.Errorf("the layouts differ: %v, %v", g, w)
	}
	for _, pair := range [][2]any{{got.aliases, want.aliases}, {got.kernel, want.kernel}, {got.private, want.private}, {got.more, want.more},
		{got.never, want.never}, {got.places.set, want.places.set}, {got.places.own, want.places.own}} {
		if !reflect.DeepEqual(pair[0], pair[1]) {
			t.Errorf("%v, %v", pair[0], pair[1])
		}
	}
}

// Whatever happens to the tree, what is renewed is what a survey would give.
func TestPropertyRenew(t *testing.T) {
	names := []string{"ws", "ws/sub", "ws/sub/f", "ws/.env", "ro", "ro/f", "ro/l", "ro/none", "far", "far/f", "l", "missing", "missing/deep", "empty", "out", "out/other"}
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	renewed, refused := 0, 0
	for n := range 40 {
		x := newRenewable(t)
		name := func() string { return names[random.IntN(len(names))] }
		var script string
		for range 1 + random.IntN(3) {
			op := []string{"mv A B", "rm -rf A", "mkdir A", "touch A", "ln -s C A", "ln A B", "chmod 7D0 A", "touch A/new",
				"rm -rf A; mkdir A", "rm -f A; echo x >A", "true"}[random.IntN(11)]
			script += strings.NewReplacer("A", name(), "B", name(), "C", filepath.Base(name()), "D", strconv.Itoa(random.IntN(8))).Replace(op) + " 2>/dev/null; "
		}
		x.sh(t, script+"true")
		again := x.before.Renew(x.w)
		fresh, err := Survey(x.paths, x.w)
		if again == nil {
			refused++
		} else if renewed++; err != nil {
			t.Fatalf("seed %d, %d: %q: renewed, and a survey says %v", seed, n, script, err)
		} else {
			sameReached(t, again, fresh)
		}
		if err == nil {
			fresh.Close()
		}
		if t.Failed() {
			t.Fatalf("seed %d, %d: %q", seed, n, script)
		}
	}
	if renewed == 0 || refused == 0 {
		t.Errorf("%d renewed, %d refused", renewed, refused)
	}
}
