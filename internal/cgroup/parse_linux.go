package cgroup

import (
	"path"
	"strconv"
	"strings"
)

// counter reads one "NAME VALUE" line of an events file (memory.events, pids.events,
// cgroup.events).
func counter(text, name string) (uint64, bool) {
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) == 2 && f[0] == name {
			n, err := strconv.ParseUint(f[1], 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}

// mount is one mount of the cgroup v2 hierarchy: the cgroup at its top, as seen from
// this cgroup namespace, and where it is.
type mount struct{ root, point string }

// mounts reads the cgroup2 lines of a mountinfo file (proc_pid_mountinfo(5)).
func mounts(mountinfo string) []mount {
	var found []mount
	for line := range strings.Lines(mountinfo) {
		left, right, ok := strings.Cut(line, " - ")
		f := strings.Fields(left)
		if ok && len(f) >= 6 && strings.HasPrefix(right, "cgroup2 ") {
			found = append(found, mount{unescape(f[3]), unescape(f[4])})
		}
	}
	return found
}

// unescape undoes mountinfo's \040 for a blank, and its like.
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// ancestor finds where the deepest cgroup above both own (a path of
// /proc/self/cgroup) and the directory base is mounted. It needs write access to
// that one's cgroup.procs for a process to move from the one to the other
// (cgroup-v2.rst, "Delegation Containment"). ok is false where this mount shows none.
func ancestor(ms []mount, own, base string) (dir string, ok bool) {
	at := -1
	for i, m := range ms { // what was mounted last, deepest, is what base is on
		if within(m.point, base) && (at < 0 || len(m.point) >= len(ms[at].point)) {
			at = i
		}
	}
	if at < 0 {
		return "", false
	}
	// Not path.Join: a root above this cgroup namespace is written "/..".
	m := ms[at]
	root := strings.TrimSuffix(m.root, "/")
	common := commonPrefix(own, root+strings.TrimPrefix(base, strings.TrimSuffix(m.point, "/")))
	if !within(m.root, common) {
		return "", false
	}
	return path.Clean(m.point + strings.TrimPrefix(common, root)), true
}

func within(top, p string) bool {
	return top == "/" || p == top || strings.HasPrefix(p, top+"/")
}

func commonPrefix(a, b string) string {
	as, bs := strings.Split(strings.Trim(a, "/"), "/"), strings.Split(strings.Trim(b, "/"), "/")
	n := 0
	for n < len(as) && n < len(bs) && as[n] == bs[n] {
		n++
	}
	return "/" + strings.Join(as[:n], "/")
}
