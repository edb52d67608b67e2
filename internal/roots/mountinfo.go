package roots

import (
	"bytes"
	"fmt"
	"strings"

	"sandboxd/internal/host"
	"sandboxd/internal/procfs"
)

// Mount is one line of /proc/PID/mountinfo; see proc_pid_mountinfo(5).
type Mount struct {
	ID, Parent uint64
	Dev        string // major:minor
	Root       string // directory of the file system that forms the root of this mount
	Point      string // where it is mounted, as the process sees it
	FSType     string
	ReadOnly   bool // the mount, or all of its file system
}

// ParseMountinfo reads a whole mountinfo file. An unreadable line is an error: to
// leave out a mount would be to misjudge what lies under it.
func ParseMountinfo(data []byte) ([]Mount, error) {
	out := make([]Mount, 0, bytes.Count(data, []byte("\n"))+1)
	n := 0
	for line := range strings.SplitSeq(string(data), "\n") { // often: two looks for each execution
		n++
		if line == "" {
			continue
		}
		m, ok := parseMount(line)
		if !ok {
			return nil, fmt.Errorf("cannot read line %d of mountinfo: it has an unknown form", n)
		}
		out = append(out, m)
	}
	return out, nil
}

func parseMount(line string) (Mount, bool) {
	var fields [6]string
	rest, more := line, true
	for i := range fields {
		if !more {
			return Mount{}, false
		}
		fields[i], rest, more = strings.Cut(rest, " ")
	}
	for word := ""; word != "-"; { // behind the optional fields
		if !more {
			return Mount{}, false
		}
		word, rest, more = strings.Cut(rest, " ")
	}
	if !more {
		return Mount{}, false
	}
	kind, _, _ := strings.Cut(rest, " ")
	options := rest[strings.LastIndexByte(rest, ' ')+1:]
	id, ok1 := number(fields[0])
	parent, ok2 := number(fields[1])
	root, ok3 := procfs.Unescape(fields[3])
	point, ok4 := procfs.Unescape(fields[4])
	fstype, ok5 := procfs.Unescape(kind)
	ok := ok1 && ok2 && ok3 && ok4 && ok5 && strings.HasPrefix(point, "/") && fields[2] != ""
	readOnly := hasRO(fields[5]) || hasRO(options) // options of the mount, of the file system
	return Mount{ID: id, Parent: parent, Dev: fields[2], Root: root, Point: point, FSType: fstype, ReadOnly: readOnly}, ok
}

func hasRO(options string) bool { return options == "ro" || strings.HasPrefix(options, "ro,") }

// ReadOnly gives a function that says whether what is at a physical path lies on a mount
// that is read-only.
func ReadOnly(mounts []Mount) func(path string) bool {
	var some []Mount
	for _, m := range mounts {
		if m.ReadOnly {
			some = append(some, m)
		}
	}
	return func(path string) bool {
		if _, ok := mountAt(some, path, 0); !ok { // of most hosts' paths
			return false
		}
		m, _ := mountAt(mounts, path, 0)
		return m.ReadOnly
	}
}

func number(s string) (uint64, bool) {
	if s == "" || len(s) > 18 {
		return 0, false
	}
	var n uint64
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + uint64(c-'0')
	}
	return n, true
}

// mountAt finds the mount that the directory dir lies on: by its id where the
// kernel gave one, else the last one of the longest mount point.
func mountAt(mounts []Mount, dir string, id uint64) (Mount, bool) {
	best, found := Mount{}, false
	for _, m := range mounts {
		if !host.Beneath(dir, m.Point) {
			continue
		}
		if id != 0 && m.ID == id {
			return m, true
		}
		if !found || len(m.Point) >= len(best.Point) {
			best, found = m, true
		}
	}
	return best, found
}
