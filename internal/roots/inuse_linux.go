package roots

import (
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sandboxd/internal/host"
	"sandboxd/internal/procfs"
)

// mountsOn looks for mounts on placeholders in every mount table that this process
// may read, and gives those that have one: removing such a directory would take the
// mount away under a command that still runs. Tables of other users, and those that
// a /proc with hidepid or another pid namespace does not show, are not covered.
func mountsOn(list []*placeholder) map[*placeholder]bool {
	used := map[*placeholder]bool{}
	if len(list) == 0 {
		return used
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		for _, p := range list {
			used[p] = true
		}
		return used
	}
	foreign := false
	for _, p := range list {
		foreign = foreign || !p.own
	}
	if foreign && !settled(list) {
		for _, p := range list {
			used[p] = used[p] || !p.own
		}
	}
	own, _ := os.Readlink("/proc/self/ns/mnt")
	seen := map[string]bool{own: true} // a table is read once per namespace
	for _, e := range entries {
		pid := e.Name()
		if pid[0] < '1' || pid[0] > '9' {
			continue
		}
		ns, err := os.Readlink("/proc/" + pid + "/ns/mnt")
		if err == nil && seen[ns] {
			continue
		}
		data, err := os.ReadFile("/proc/" + pid + "/mountinfo")
		if err != nil || len(data) == 0 {
			continue // it has ended, or is none of this user's
		}
		if ns != "" {
			seen[ns] = true
		}
		table := string(data)
		for _, p := range list {
			if !used[p] && mountedOn(table, p) {
				used[p] = true
			}
		}
	}
	return used
}

// mountedOn looks for a mount point that is the path by name (while bubblewrap
// builds a view it stands below another directory) or by place in the file system.
func mountedOn(table string, p *placeholder) bool {
	if !strings.Contains(table, p.name) && !strings.Contains(table, `\`) {
		return false
	}
	mounts, err := ParseMountinfo([]byte(table))
	if err != nil {
		return true
	}
	byID := make(map[uint64]Mount, len(mounts))
	for _, m := range mounts {
		byID[m.ID] = m
	}
	for _, m := range mounts {
		if strings.HasSuffix(m.Point, p.op.Path) {
			return true
		}
		on, ok := byID[m.Parent]
		if p.known && ok && host.Beneath(m.Point, on.Point) && p.at == (tree{on.Dev, rebase(m.Point, on.Point, on.Root)}) {
			return true
		}
	}
	return false
}

// A bubblewrap whose helper was killed still builds its jail to the end, and would
// make a mount point that is gone by itself, where nobody knows it as a placeholder.
// That takes it milliseconds, or seconds on a loaded machine.
const (
	settleBound = 5 * time.Second
	settleLook  = 5 * time.Millisecond // longer than a fork takes to become bubblewrap
)

// settled waits until no bubblewrap builds a jail: twice in a row, because one that
// was forked just now is not yet known as one. False means that the bound came first.
func settled(list []*placeholder) bool {
	quiet := 0
	for end := time.Now().Add(settleBound); time.Now().Before(end); time.Sleep(settleLook) {
		if building(list, end) {
			quiet = 0
		} else if quiet++; quiet == 2 {
			return true
		}
	}
	return false
}

// building looks for a bubblewrap without a helper and without a child: its supervisor
// has the namespace's init as one, and that one the command, once the mounts are made.
// At the end it is taken for granted: a command can call any number of processes bwrap.
func building(list []*placeholder, end time.Time) bool {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return true
	}
	for _, e := range entries {
		pid := e.Name()
		if pid[0] < '1' || pid[0] > '9' {
			continue
		}
		comm, err := os.ReadFile("/proc/" + pid + "/comm")
		if err != nil || !strings.HasPrefix(string(comm), "bwrap") {
			continue
		}
		if time.Now().After(end) {
			return true
		}
		kids, err := os.ReadFile("/proc/" + pid + "/task/" + pid + "/children")
		if err == nil && len(kids) == 0 && stray(pid) && !hung(pid) && concerns(pid, list) {
			return true
		}
	}
	return false
}

// hungAfter is the age of a bubblewrap that does not build any more: one whose supervisor
// was killed in the instant before it bound its life to that one waits for it for ever.
const hungAfter = 30 * time.Second

func hung(pid string) bool {
	row, err := statOf(pid)
	var now unix.Timespec
	if err != nil || unix.ClockGettime(unix.CLOCK_BOOTTIME, &now) != nil {
		return false
	}
	return time.Duration(now.Nano()) > time.Duration(row.Start)*10*time.Millisecond+hungAfter
}

func statOf(pid string) (procfs.Stat, error) {
	b, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return procfs.Stat{}, err
	}
	return procfs.ParseStat(b)
}

// concerns says whether a bubblewrap that builds a jail may still mount on one of the
// placeholders: it holds a directory above one to bind it, or has bound it. One that
// was given paths alone shows neither, and has a while to get there.
func concerns(pid string, list []*placeholder) bool {
	var above []string
	var st unix.Stat_t
	if err := unix.Stat("/proc/"+pid, &st); err != nil || int(st.Uid) != os.Geteuid() {
		return false // another user's helper makes another user's placeholders
	}
	fds, err := os.ReadDir("/proc/" + pid + "/fd")
	for _, e := range fds {
		if path, err := os.Readlink("/proc/" + pid + "/fd/" + e.Name()); err == nil && len(path) > 1 {
			above = append(above, path)
		}
	}
	table, terr := os.ReadFile("/proc/" + pid + "/mountinfo")
	if err != nil && terr != nil {
		return true
	}
	if mounts, err := ParseMountinfo(table); err == nil {
		for _, m := range mounts {
			if path, ok := strings.CutPrefix(m.Point, "/newroot"); ok && path != "" {
				above = append(above, path)
			}
		}
	}
	given := false
	for _, dir := range above {
		if !strings.HasPrefix(dir, "/dev") && !strings.HasPrefix(dir, "/proc") {
			given = given || strings.HasPrefix(dir, "/") && !strings.HasPrefix(dir, "/memfd")
		}
		for _, p := range list {
			if host.Beneath(p.op.Path, dir) {
				return true
			}
		}
	}
	return !given && young(pid)
}

// young says that a process has not been looked at for longer than buildBound: the time
// of its directory in /proc is that of the first look.
func young(pid string) bool {
	info, err := os.Stat("/proc/" + pid)
	return err == nil && time.Since(info.ModTime()) < buildBound
}

// buildBound is long for a jail of hundreds of mounts.
const buildBound = 5 * time.Second

// stray says that a bubblewrap lives and that no helper does above it.
func stray(pid string) bool {
	own, err := os.ReadFile("/proc/self/comm")
	if err != nil {
		return true
	}
	for range 4 { // init, supervisor, helper
		row, err := statOf(pid)
		if err != nil || row.State == 'Z' || row.State == 'X' {
			return false
		}
		pid = strconv.Itoa(row.PPID)
		comm, err := os.ReadFile("/proc/" + pid + "/comm")
		if err != nil {
			return true
		}
		if string(comm) == string(own) {
			return false
		}
		if !strings.HasPrefix(string(comm), "bwrap") {
			return true
		}
	}
	return true
}
