package roots

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func pathsOf(lost []Loss) []string {
	var out []string
	for _, l := range lost {
		out = append(out, l.Path)
	}
	return out
}

func TestWatchTellsOfLostMounts(t *testing.T) {
	dir := testDir(t)
	build(t, dir, "removed/", "stays/", "parent/moved/")
	in := func(p string) string { return filepath.Join(dir, p) }
	points := []string{in("removed"), in("stays"), in("parent/moved")}
	jail := start(t, "mount", points[0]+":"+points[1]+":"+points[2])
	told := make(chan []string, 8)
	w, err := watchOf(jail.cmd.Process.Pid, points, nil, func(lost []Loss) { told <- pathsOf(lost) })
	must(t, err)
	// The host removes what is under a mask: the mount goes with it.
	must(t, os.Remove(in("removed")))
	if lost := <-told; !slices.Equal(lost, []string{in("removed")}) {
		t.Errorf("told of %v", lost)
	}
	// A rename of a parent is seen at the end at the latest.
	must(t, os.Rename(in("parent"), in("elsewhere")))
	jail.kill()
	lost, err := w.Stop()
	w.Close()
	must(t, err)
	if !slices.Equal(pathsOf(lost), []string{in("parent/moved"), in("removed")}) {
		t.Errorf("lost in all: %v", lost)
	}
}

func TestWatchOfAnUndisturbedJail(t *testing.T) {
	dir := testDir(t)
	build(t, dir, "a/", "b/")
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	jail := start(t, "mount", a)
	w, err := watchOf(jail.cmd.Process.Pid, []string{a}, nil, func(lost []Loss) { t.Errorf("told of %v", lost) })
	must(t, err)
	jail.kill()
	lost, err := w.Stop()
	w.Close()
	must(t, err)
	if len(lost) != 0 {
		t.Errorf("lost %v", lost)
	}
	// One that was never mounted is told of at once.
	other := start(t, "mount", a)
	told := make(chan []string, 1)
	w, err = watchOf(other.cmd.Process.Pid, []string{a, b}, nil, func(lost []Loss) { told <- pathsOf(lost) })
	must(t, err)
	if lost := <-told; !slices.Equal(lost, []string{b}) {
		t.Errorf("told of %v", lost)
	}
	_, err = w.Stop()
	w.Close()
	if err != nil {
		t.Error(err)
	}
	if _, err := watchOf(1<<22+1, nil, nil, nil); err == nil {
		t.Error("watching a process that does not exist")
	}
}

func watchOf(pid int, points []string, judge Judge, told func([]Loss)) (*Watch, error) {
	table, err := OpenMounts(pid)
	if err != nil {
		return nil, err
	}
	return StartWatch(table, points, judge, told)
}
