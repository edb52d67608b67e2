package cgroup

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"sandboxd/internal/procfs"
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
		if !ok || len(f) < 6 || !strings.HasPrefix(right, "cgroup2 ") {
			continue
		}
		root, ok := procfs.Unescape(f[3])
		point, ok2 := procfs.Unescape(f[4])
		if ok && ok2 {
			found = append(found, mount{root, point})
		}
	}
	return found
}

// borders reports whether cgroup namespaces are borders for processes of the hierarchy
// (nsdelegate, which all its mounts have or none).
func borders(mountinfo string) bool {
	for line := range strings.Lines(mountinfo) {
		if _, right, _ := strings.Cut(line, " - "); strings.HasPrefix(right, "cgroup2 ") {
			f := strings.Fields(right)
			return slices.Contains(strings.Split(f[len(f)-1], ","), "nsdelegate")
		}
	}
	return false
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
