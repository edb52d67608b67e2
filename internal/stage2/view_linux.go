package stage2

import (
	"bytes"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"sandboxd/internal/procfs"
	"sandboxd/internal/stage2/spec"
)

// verifyView compares the kernel's mount table with the plan's mount points: a
// bubblewrap that binds more than it was told, or leaves something out, is noticed.
func (p *process) verifyView() *spec.Failure {
	if len(p.spec.View.Mounts) == 0 {
		return nil
	}
	v := newView(p.spec.View)
	why := ""
	// A table is read in pieces, and older kernels skip a line when one before it goes
	// meanwhile: what the host unmounts goes here too. So a difference must show twice.
	for range 2 {
		table, err := readTable()
		if err != nil {
			return failure(spec.StepView, "cannot read /proc/self/mountinfo", err)
		}
		if why = v.difference(table); why == "" {
			p.report.Mounts = v.required
			return nil
		}
	}
	return failure(spec.StepView, why, nil)
}

func readTable() ([]byte, error) {
	fd, err := unix.Open("/proc/self/mountinfo", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	buf := make([]byte, 16<<10)
	for n := 0; ; {
		m, err := unix.Read(fd, buf[n:])
		switch {
		case err == unix.EINTR:
		case err != nil:
			return nil, err
		case m == 0:
			return buf[:n], nil
		}
		if n += max(m, 0); len(buf)-n < 4096 {
			buf = append(buf, make([]byte, len(buf))...)
		}
	}
}

// place is one mount point of the plan and what the table says of it.
type place struct {
	holds    spec.Holds // of the last one planned here, which lies on top
	readOnly bool       // the same
	required int        // mounts of the plan at this very path
	allowed  int        // these, those that bubblewrap may add, and the host's below a tree

	seen     int
	writable bool   // of the last one seen, which lies on top
	device   string // of the same
}

// view is spec.View, indexed.
type view struct {
	mounts   []spec.Mount
	places   map[string]*place
	host     map[spec.HostMount]bool
	devices  map[string]bool
	required uint64
}

func newView(s spec.View) view {
	v := view{mounts: s.Mounts, places: make(map[string]*place, len(s.Mounts)), host: make(map[spec.HostMount]bool, len(s.Host)),
		devices: make(map[string]bool, len(s.Devices))}
	for _, m := range s.Mounts {
		at := v.places[m.Path]
		if at == nil {
			at = &place{}
			v.places[m.Path] = at
		}
		at.holds, at.readOnly = m.Holds, m.ReadOnly
		at.allowed++
		if !m.Optional {
			at.required++
			v.required++
		}
	}
	for _, m := range s.Host {
		v.host[m] = true
		if at := v.places[m.Path]; at != nil {
			at.allowed++
		}
	}
	for _, device := range s.Devices {
		v.devices[device] = true
	}
	return v
}

// difference says what the table has or lacks against the plan, or "".
func (v view) difference(table []byte) string {
	for _, at := range v.places {
		at.seen = 0
	}
	var others []spec.HostMount
	for line := range bytes.Lines(table) {
		m, writable, ok := parseMount(line)
		if !ok {
			return "the mount table has a line of an unknown form"
		}
		if at := v.places[m.Path]; at != nil {
			at.seen++
			at.writable, at.device = writable, m.Device
		} else {
			others = append(others, m)
		}
	}
	for _, m := range v.mounts {
		at := v.places[m.Path]
		switch {
		case at.seen < at.required:
			return strconv.Quote(m.Path) + " is not mounted, or not as often as planned"
		case at.seen > at.allowed:
			return strconv.Quote(m.Path) + " is mounted over once more than planned" + meanwhile
		case at.seen > 0 && at.readOnly && at.writable:
			return strconv.Quote(m.Path) + " is mounted writable and planned read-only"
		}
	}
	for _, m := range others {
		if !v.explained(m) {
			return strconv.Quote(m.Path) + " is mounted and in no plan" + meanwhile
		}
	}
	return ""
}

const meanwhile = "; if the host mounted it just now, run again"

// explained says whether a mount that the plan does not name came along with one that
// it does.
func (v view) explained(m spec.HostMount) bool {
	if v.host[m] {
		return true
	}
	for dir := parent(m.Path); ; dir = parent(dir) {
		at := v.places[dir]
		switch {
		case at != nil && at.holds == spec.HoldsTree:
			// What the host mounts after it was asked arrives here by itself
			// (mount_namespaces(7)), and is another file system than those it had.
			return !v.devices[m.Device]
		case at != nil && at.holds == spec.HoldsFresh:
			return m.Device == at.device // bubblewrap binds parts of /proc onto themselves
		case at != nil || dir == "/":
			return false
		}
	}
}

func parent(path string) string {
	if i := strings.LastIndexByte(path, '/'); i > 0 {
		return path[:i]
	}
	return "/"
}

// parseMount reads a line of proc_pid_mountinfo(5).
func parseMount(line []byte) (m spec.HostMount, writable, ok bool) {
	f := bytes.SplitN(line, []byte(" "), 7) // id, parent, device, root, mount point, options
	if len(f) < 7 {
		return m, false, false
	}
	m.Path, ok = procfs.Unescape(string(f[4]))
	m.Device = string(f[2])
	options := string(f[5])
	return m, options != "ro" && !strings.HasPrefix(options, "ro,"), ok
}
