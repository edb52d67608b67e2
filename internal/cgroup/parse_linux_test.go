package cgroup

import (
	"reflect"
	"testing"
)

func TestCounter(t *testing.T) {
	const events = "low 0\nhigh 0\nmax 117\noom 3\noom_kill 2\noom_group_kill 1\nbad x\nlong 1 2\n"
	for name, want := range map[string]uint64{"max": 117, "oom_kill": 2, "oom": 3} {
		if got, ok := counter(events, name); !ok || got != want {
			t.Errorf("%s: got %d, %v, want %d", name, got, ok, want)
		}
	}
	for _, name := range []string{"oo", "bad", "long", "missing", ""} {
		if got, ok := counter(events, name); ok {
			t.Errorf("%q: found %d", name, got)
		}
	}
}

func TestPopulatedIsAssumedWhereNothingIsSaid(t *testing.T) {
	for events, want := range map[string]bool{"populated 0\nfrozen 0\n": false, "populated 1\n": true, "": true, "frozen 0\n": true} {
		if got := populated(events); got != want {
			t.Errorf("%q: got %v", events, got)
		}
	}
}

func TestMounts(t *testing.T) {
	const info = `24 1 8:1 / / rw - ext4 /dev/root rw
30 24 0:26 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
31 24 0:27 / /sys/fs/cgroup/unified rw,relatime shared:9 - cgroup2 cgroup2 rw,nsdelegate
32 24 0:27 /a\040b /mnt/c\134d rw - cgroup2 none rw
broken
`
	want := []mount{{"/", "/sys/fs/cgroup/unified"}, {"/a b", `/mnt/c\d`}}
	if got := mounts(info); !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestBorders(t *testing.T) {
	for info, want := range map[string]bool{
		"31 24 0:27 / /c rw,nsdelegate - ext4 /dev/root rw\n32 24 0:27 / /c rw - cgroup2 cgroup2 rw,nsdelegate,memory_recursiveprot\n": true,
		"31 24 0:27 / /c rw,nsdelegate - cgroup2 nsdelegate rw,nsdelegates\n":                                                          false,
		"": false,
	} {
		if got := borders(info); got != want {
			t.Errorf("%q: got %v", info, got)
		}
	}
}

func TestAncestor(t *testing.T) {
	top := []mount{{"/", "/sys/fs/cgroup"}}
	part := []mount{{"/", "/sys/fs/cgroup"}, {"/user/me", "/home/me/cg"}}
	outside := []mount{{"/..", "/sys/fs/cgroup"}}
	for _, c := range []struct {
		name      string
		ms        []mount
		own, base string
		want      string // "": none
	}{
		{"siblings", top, "/svc/helper", "/sys/fs/cgroup/svc/jobs", "/sys/fs/cgroup/svc"},
		{"base is the parent", top, "/svc/helper", "/sys/fs/cgroup/svc", "/sys/fs/cgroup/svc"},
		{"base is the root", top, "/", "/sys/fs/cgroup", "/sys/fs/cgroup"},
		{"helper in the root", top, "/", "/sys/fs/cgroup/svc", "/sys/fs/cgroup"},
		{"far apart", top, "/a/b/c", "/sys/fs/cgroup/d/e", "/sys/fs/cgroup"},
		{"a name that another begins with", top, "/svc", "/sys/fs/cgroup/svc2", "/sys/fs/cgroup"},
		{"a part that is mounted elsewhere", part, "/user/me/shell", "/home/me/cg/jobs", "/home/me/cg"},
		{"helper above the part that is mounted", part, "/user/you", "/home/me/cg/jobs", ""},
		{"mounted from above the namespace", outside, "/../x", "/sys/fs/cgroup/y", "/sys/fs/cgroup"},
		{"not on a cgroup mount", top, "/", "/tmp/x", ""},
		{"no mount", nil, "/", "/sys/fs/cgroup", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, ok := ancestor(c.ms, c.own, c.base)
			if got != c.want || ok != (c.want != "") {
				t.Errorf("got %q, %v, want %q", got, ok, c.want)
			}
		})
	}
}

// proc_swaps(5): the first line names the columns.
func TestListed(t *testing.T) {
	const head = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"
	for text, want := range map[string]bool{"": false, head: false, head + "/dev/sda2 partition 8388604 0 -2\n": true} {
		if got := listed(text) > 1; got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}
