package bwrap_test

import (
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sandboxd/internal/host"
	"sandboxd/internal/plan"
)

// The kernel's answer equals the plan's for every file of random trees under
// random policies: what At says is readable can be read, what it says is writable
// can be appended to, and nothing else can.
func TestKernelAgreesWithThePlan(t *testing.T) {
	seen := map[plan.Effect]int{}
	for seed := range int64(6) {
		for _, uid := range callers {
			t.Run(fmt.Sprintf("seed%d-uid%d", seed, uid), func(t *testing.T) {
				j := newJail(t, uid)
				files := randomTree(j, rand.New(rand.NewSource(seed)))
				compare(j, files, seen)
			})
		}
	}
	for _, e := range []plan.Effect{plan.None, plan.ReadOnly, plan.ReadWrite, plan.Masked} {
		if seen[e] == 0 {
			t.Errorf("no file was ever %s", e)
		}
	}
}

// randomTree makes a tree with a file in every directory and a policy over it.
func randomTree(j *jail, r *rand.Rand) (files []string) {
	names := []string{"a", "b", ".git", "hooks"}
	dirs := map[string]bool{"ws": true}
	for range 10 {
		at := "ws"
		if r.Intn(4) == 0 {
			at = "other"
		}
		for range 1 + r.Intn(3) {
			at += "/" + names[r.Intn(len(names))]
			dirs[at] = true
		}
		dirs[strings.SplitN(at, "/", 2)[0]] = true
	}
	var all []string
	for dir := range dirs {
		all = append(all, dir)
	}
	slices.Sort(all)
	for _, dir := range all {
		j.write(dir+"/f", j.path(dir+"/f"))
		files = append(files, j.path(dir+"/f"))
	}
	if r.Intn(2) == 0 {
		j.link("ws", "alias")
	}
	pick := func() string {
		path := j.path(all[r.Intn(len(all))])
		if r.Intn(4) == 0 {
			path += "/f"
		}
		if alias := j.path("alias"); lstat(alias).Kind == host.Link && r.Intn(3) == 0 {
			path = strings.Replace(path, j.path("ws"), alias, 1)
		}
		return path
	}
	for range r.Intn(3) {
		j.p.WritableRoots = append(j.p.WritableRoots, pick())
	}
	for range r.Intn(3) {
		j.p.ReadableRoots = append(j.p.ReadableRoots, pick())
	}
	for range 1 + r.Intn(3) {
		path := pick()
		if r.Intn(3) == 0 && lstat(path).Kind == host.Dir {
			path += "/gone/deeper"
		}
		j.p.Protected = append(j.p.Protected, path)
	}
	return files
}

// compare asks the kernel about every file.
func compare(j *jail, files []string, seen map[plan.Effect]int) {
	j.t.Helper()
	var script strings.Builder
	for _, f := range files {
		fmt.Fprintf(&script, `r=-; w=-; [ "$(cat %[1]s 2>/dev/null)" = %[1]s ] && r=r; (: >> %[1]s) 2>/dev/null && w=w; echo $r$w %[1]s`+"\n", f)
	}
	for _, p := range j.p.Protected { // re-creating what is hidden
		fmt.Fprintf(&script, "mkdir -p %[1]s 2>/dev/null && (: > %[1]s/planted) 2>/dev/null; mv %[2]s %[2]s.moved 2>/dev/null && mkdir -p %[1]s && : > %[1]s/planted\n", p, filepath.Dir(p))
	}
	out, _ := j.run(script.String())
	got := map[string]string{}
	for _, line := range strings.Split(strings.TrimSpace(out), "\n") {
		if rw, path, ok := strings.Cut(line, " "); ok {
			got[path] = rw
		}
	}
	for _, f := range files {
		v := j.plan.At(f)
		seen[v.Effect]++
		want := map[plan.Effect]string{plan.ReadOnly: "r-", plan.ReadWrite: "rw"}[v.Effect]
		if want == "" {
			want = "--"
		}
		if got[f] != want {
			j.t.Errorf("%s: the kernel says %q, the plan %s by %s %q\n%s%+v", f, got[f], v.Effect, v.Op.Class, v.Op.Path, j.listing(), j.p)
		}
	}
	for _, p := range j.p.Protected {
		if _, err := os.Lstat(filepath.Join(p, "planted")); err == nil {
			j.t.Errorf("%s was planted on the host\n%s%+v", p, j.listing(), j.p)
		}
	}
}
