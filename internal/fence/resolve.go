package fence

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sandboxd/internal/host"
	"sandboxd/internal/plan"
	"sandboxd/internal/roots"
)

// Grant is one place that may be granted: reached, there, and this caller's.
type Grant struct {
	Path    string   // physical
	Tool    string   // whose it is
	Execute []string // below it: to be guarded
	Write   bool

	Repositories []string // below it, as in Cache
}

// reacher judges candidates, each counting every other one as writable.
type reacher struct {
	layout host.Layout
	others []string // what commands may write
	uid    int
	home   string // physical, "" if unknown
	keep   []string
}

// reach surveys the paths once. writable are the places that this preset or an
// earlier run of it lets a command write; mutable those of other helpers.
func reach(paths, writable []string, home, workspace string) (*reacher, error) {
	r := &reacher{uid: os.Geteuid()}
	r.others = append(slices.Clone(writable), roots.SharedDirs(nil)...)
	look := slices.Clone(paths)
	if usable(home) {
		look = append(look, home)
	}
	// Optional, so that one planted link drops one candidate and not all of them.
	s, err := roots.Survey([]string{"/"}, roots.Writability{Shared: r.others, Optional: append(look, workspace)})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	r.layout = s.Layout()
	if usable(home) {
		if res := r.layout.Resolve(home); res.Err == nil {
			r.home = res.Path
		}
	}
	if res := r.layout.Resolve(workspace); res.Err == nil {
		r.keep = append(r.keep, res.Path)
	}
	if r.home != "" {
		r.keep = append(r.keep, r.home)
	}
	return r, nil
}

// grant judges one candidate. Absent says that there is nothing, which is no news
// unless a variable names it; why is what was wrong.
func (r *reacher) grant(path string, readOnly bool) (physical string, absent bool, why string) {
	res := r.layout.Resolve(path)
	switch {
	case res.Err != nil:
		return "", false, res.Err.Error()
	case res.Node.Kind == host.Missing:
		return "", true, "it does not exist"
	case res.Node.Kind == host.Denied || res.Node.Kind == host.Unknown:
		return "", false, r.barred(path)
	case res.Node.Kind != host.Dir:
		return "", false, "it is not a directory"
	case readOnly: // shows what is there, and opens nothing
		return res.Path, false, ""
	case !r.own(res.Node):
		return "", false, fmt.Sprintf("it belongs to uid %d", res.Node.UID)
	}
	if why := r.misplaced(path, res); why != "" {
		return "", false, why
	}
	return res.Path, false, ""
}

// barred finds the words for a path that the survey did not follow.
func (r *reacher) barred(path string) string {
	s, err := roots.Survey([]string{path}, roots.Writability{Shared: r.others})
	var refusal *plan.Refusal
	switch {
	case errors.As(err, &refusal):
		return fmt.Sprintf("it %s", refusal.Reason)
	case err != nil:
		return err.Error()
	}
	s.Close()
	return "a directory on the way to it is closed to this user"
}

// own says whether this caller could write the directory; root's command has no
// capabilities and is an ordinary user to others' files.
func (r *reacher) own(n host.Node) bool {
	return int(n.UID) == r.uid || n.Mode&0o022 != 0
}

// misplaced says why a directory cannot be a cache: it holds what must not become
// writable, or a link below HOME leads back into HOME, where no tool keeps its cache.
func (r *reacher) misplaced(path string, res host.Resolution) string {
	for _, k := range r.keep {
		if host.Beneath(k, res.Path) {
			return fmt.Sprintf("%q is, or holds, your home directory or the workspace", res.Path)
		}
	}
	if slices.Contains(systemDirs, res.Path) || runtimeDir(res.Path) {
		return fmt.Sprintf("%q is a system directory", res.Path)
	}
	for _, dir := range systemTrees {
		if host.Beneath(dir, res.Path) || host.Beneath(res.Path, dir) && !local(res.Path) {
			return fmt.Sprintf("%q is a system directory", res.Path)
		}
	}
	if r.home == "" {
		return ""
	}
	for _, hop := range res.Links {
		if host.Beneath(hop.Path, r.home) && host.Beneath(res.Path, r.home) {
			return fmt.Sprintf("the link %q leads to %q in your home directory, which is no place of its own for a cache", hop.Path, res.Path)
		}
	}
	for _, name := range private {
		if dir := filepath.Join(r.home, name); host.Beneath(res.Path, dir) {
			return fmt.Sprintf("%q lies in %q", res.Path, dir)
		}
	}
	return ""
}

// local says that a path is a directory of its own below /usr/local, where container
// images keep caches (/usr/local/cargo).
func local(path string) bool {
	name, ok := strings.CutPrefix(path, "/usr/local/")
	first, _, _ := strings.Cut(name, "/")
	return ok && !slices.Contains([]string{"bin", "etc", "include", "lib", "libexec", "man", "sbin", "share"}, first)
}

// runtimeDir says that a path is where a user's services listen.
func runtimeDir(path string) bool {
	return filepath.Dir(path) == "/run/user" || path == "/run/user" || host.Beneath(path, "/run/dbus") || host.Beneath(path, "/run/systemd")
}

// systemDirs are no cache and no temporary directory themselves; one in them may be.
var systemDirs = []string{
	"/", "/home", "/media", "/mnt", "/nix", "/opt", "/root", "/run", "/srv", "/var", "/var/cache", "/var/lib", "/var/log", "/var/spool",
	"/Users", "/private", "/private/var",
}

// systemTrees and private are never a cache, whatever a variable says.
var (
	systemTrees = []string{"/bin", "/boot", "/dev", "/etc", "/lib", "/lib64", "/proc", "/sbin", "/sys", "/usr", "/System", "/Library", "/private/etc"}
	private     = []string{".ssh", ".gnupg", ".aws", ".kube", ".config", ".local/bin", "bin"}
)
