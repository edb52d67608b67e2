package roots

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// paper judges as a plan would: /ws is a grant with a mask at /ws/.env and a read-only
// file at /ws/conf; /keys on 8:1 is protected.
type paper struct{}

func (paper) Expected(Mount, int) bool { return true }
func (paper) Own(m Mount, n int) (bool, bool) {
	return m.Point != "/ws/.env" || m.FSType == "tmpfs", m.Point != "/ws/pin"
}
func (paper) Lost(m Mount) []Loss {
	if m.Dev == "8:1" && (m.Root == "/keys" || m.Root == "/") {
		return []Loss{{"/keys", "shown"}}
	}
	return nil
}
func (paper) Bare(string) bool { return false }
func (paper) Came() []Loss     { return nil }

// What the host takes away is told from what the kernel does with a mount by itself.
func TestRecord(t *testing.T) {
	start := []Mount{
		{10, 1, "0:40", "/newroot", "/", "tmpfs", true},
		{11, 10, "8:1", "/ws", "/ws", "ext4", false},
		{12, 11, "8:1", "/old", "/ws/old", "ext4", false},
		{13, 11, "8:1", "/vault", "/ws/.env", "ext4", false}, // the host's, where the mask lies
		{14, 11, "8:1", "/ws/conf", "/ws/conf", "ext4", true},
		{15, 11, "8:1", "/ws/pin", "/ws/pin", "ext4", true}, // for its file system is
		{16, 13, "0:40", "/bindfile//deleted", "/ws/.env", "tmpfs", true},
	}
	points := []string{"/ws/.env", "/ws/conf", "/ws/pin"}
	without := func(ids ...uint64) []Mount {
		return slices.DeleteFunc(slices.Clone(start), func(m Mount) bool { return slices.Contains(ids, m.ID) })
	}
	with := func(table []Mount, more ...Mount) []Mount { return append(table, more...) }
	const replaced, covered, shown = " was replaced on the host during the run", " was covered", " shown"
	for name, c := range map[string]struct {
		now  []Mount
		lost string
	}{
		"nothing happened":           {start, ""},
		"the host unmounts":          {without(12), ""},
		"a number is used again":     {with(without(12), Mount{12, 11, "8:1", "/keys", "/ws/place", "ext4", false}), "/keys" + shown},
		"at the same point":          {with(without(12), Mount{12, 11, "8:1", "/keys", "/ws/old", "ext4", false}), "/keys" + shown},
		"by what covers":             {with(without(12), Mount{12, 15, "8:1", "/old", "/ws/pin", "ext4", false}), "/ws/pin" + covered},
		"a new number":               {with(without(12), Mount{17, 11, "8:1", "/keys", "/ws/place", "ext4", false}), "/keys" + shown},
		"what shows nothing":         {with(without(12), Mount{12, 11, "8:1", "/plain", "/ws/place", "ext4", false}), ""},
		"the mask goes":              {without(16), "/ws/.env" + replaced},
		"and a mount comes":          {with(without(16, 13), Mount{13, 11, "8:1", "/vault", "/ws/.env", "ext4", false}, Mount{17, 13, "8:1", "/other", "/ws/.env", "ext4", true}), "/ws/.env" + replaced},
		"with its number":            {with(without(16), Mount{16, 13, "8:1", "/other", "/ws/.env", "ext4", true}), "/ws/.env" + replaced},
		"it is carried away":         {with(without(16), Mount{16, 11, "0:40", "/bindfile//deleted", "/ws/.env~", "tmpfs", true}), "/ws/.env" + replaced},
		"it is let down":             {with(without(13, 16), Mount{16, 11, "0:40", "/bindfile//deleted", "/ws/.env", "tmpfs", true}), ""},
		"the host mounts beneath it": {with(without(16), Mount{16, 17, "0:40", "/bindfile//deleted", "/ws/.env", "tmpfs", true}, Mount{17, 13, "8:1", "/other", "/ws/.env", "ext4", false}), ""},
		"somebody mounts on it":      {with(without(), Mount{17, 16, "8:1", "/other", "/ws/.env", "ext4", false}), "/ws/.env" + covered},
		"a bind is writable now":     {with(without(14), Mount{14, 11, "8:1", "/other", "/ws/conf", "ext4", false}), "/ws/conf" + replaced},
		"a file system is writable":  {with(without(15), Mount{15, 11, "8:1", "/ws/pin", "/ws/pin", "ext4", false}), ""},
		"the grant is renamed": {[]Mount{start[0], {11, 10, "8:1", "/ws2", "/ws", "ext4", false}, {12, 11, "8:1", "/old", "/ws/old", "ext4", false}, start[3],
			{14, 11, "8:1", "/ws2/conf", "/ws/conf", "ext4", true}, {15, 11, "8:1", "/ws2/pin", "/ws/pin", "ext4", true}, start[6]}, ""},
		"the grant is covered": {with(without(), Mount{17, 11, "8:2", "/", "/ws", "ext4", false}), "/ws/.env" + covered + ", /ws/conf" + covered + ", /ws/pin" + covered},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			found := map[string]string{}
			newRecord(start, points, paper{}).lost(c.now, func(l Loss) { found[l.Path] = l.How }, func(string) bool { return false })
			for _, l := range losses(found) {
				got = append(got, l.Path+" "+strings.Join(strings.Fields(l.How)[:min(2, len(strings.Fields(l.How)))], " "))
			}
			want := strings.ReplaceAll(c.lost, " on the host during the run", "")
			if strings.Join(got, ", ") != want {
				t.Errorf("lost %q, want %q", got, want)
			}
		})
	}
	// A mask that is gone when the watch begins is lost, whatever lies there.
	found := map[string]string{}
	newRecord(without(16), points, paper{}).lost(without(16), func(l Loss) { found[l.Path] = l.How }, func(string) bool { return false })
	if len(found) != 1 || found["/ws/.env"] == "" {
		t.Errorf("lost before: %v", found)
	}
}

// slow is held up by a file system, or by a machine that has no time for it.
type slow struct {
	paper
	asked chan struct{}
}

func (s slow) Lost(Mount) []Loss { return nil }
func (s slow) Came() []Loss {
	time.Sleep(100 * time.Millisecond)
	select {
	case s.asked <- struct{}{}:
	default:
	}
	return nil
}

// One slow look is no reason to look away: a rename has no event.
func TestWatchAfterASlowLook(t *testing.T) {
	dir := testDir(t)
	build(t, dir, "removed/", "parent/moved/")
	in := func(p string) string { return filepath.Join(dir, p) }
	points := []string{in("removed"), in("parent/moved")}
	jail := start(t, "mount", points[0]+":"+points[1])
	told := make(chan []string, 8)
	judge := slow{asked: make(chan struct{}, 100)}
	w, err := watchOf(jail.cmd.Process.Pid, points, judge, func(lost []Loss) { told <- pathsOf(lost) })
	must(t, err)
	defer w.Close()
	<-judge.asked // by StartWatch
	<-judge.asked // by the first look, which has read the table
	must(t, os.Rename(in("parent"), in("elsewhere")))
	select {
	case lost := <-told:
		if !slices.Equal(lost, []string{in("parent/moved")}) {
			t.Errorf("told of %v", lost)
		}
	case <-time.After(10 * time.Second):
		t.Error("not told in 10 s")
	}
	_, err = w.Stop()
	must(t, err)
}

// However much reading costs, and it costs what a processor spends on it, the watch looks
// once a second.
func TestPauseBetweenLooks(t *testing.T) {
	for cost, want := range map[time.Duration]time.Duration{
		0: minPause, 50 * time.Microsecond: minPause, time.Millisecond: 200 * time.Millisecond, 100 * time.Millisecond: time.Second,
	} {
		if got := (&Watch{cost: cost}).pause(); got != want {
			t.Errorf("after %v: %v, want %v", cost, got, want)
		}
	}
}
