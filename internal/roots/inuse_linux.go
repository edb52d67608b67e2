package roots

import (
	"os"
	"strings"

	"sandboxd/internal/host"
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
