package cli

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"sandboxd/internal/roots"
)

// systemTrees are never a workspace by chance, with all that is in them.
var systemTrees = []string{
	"/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/proc", "/sbin", "/sys", "/usr",
	"/System", "/Library", "/private/etc",
}

// systemDirs are not a workspace themselves; what is in them may be.
var systemDirs = []string{
	"/", "/home", "/media", "/mnt", "/nix", "/opt", "/root", "/run", "/srv", "/tmp", "/var", "/var/lib", "/var/tmp",
	"/usr/local/src", "/usr/src", "/Users", "/private", "/private/tmp", "/private/var",
}

// sourceTrees are inside a system tree and yet hold work.
var sourceTrees = []string{"/usr/local/src", "/usr/src"}

// checkWorkspace refuses a current directory that a command should not be given
// just because somebody happened to stand in it.
func checkWorkspace(dir, home string) error {
	var what string
	switch {
	case home != "" && dir == home:
		what = "is your home directory"
	case slices.Contains(systemDirs, dir) || (within(dir, systemTrees) && !within(dir, sourceTrees)):
		what = "is a system directory"
	case home != "" && within(home, []string{dir}):
		what = "contains your home directory"
	default:
		return nil
	}
	return fmt.Errorf("the current directory %q %s, and the command could write all of it; change to a project's directory, or name it with --workspace %s if you mean it", dir, what, dir)
}

func within(dir string, trees []string) bool {
	return slices.ContainsFunc(trees, func(tree string) bool {
		return dir == tree || strings.HasPrefix(dir, strings.TrimSuffix(tree, "/")+"/")
	})
}

// workingDir is the current directory. It may be gone, or closed to this user.
func workingDir(s System) (string, error) {
	cwd, err := s.Getwd()
	if err != nil {
		return "", fmt.Errorf("cannot find the current directory: %w; it may have been removed: change to one that is there", err)
	}
	return cwd, nil
}

// place says which directory the command may write and where it starts.
func place(o options, s System) (workspace, cwd string, err error) {
	cwd, err = workingDir(s)
	if err != nil {
		return "", "", err
	}
	if !utf8.ValidString(cwd) {
		return "", "", fmt.Errorf("cannot use the current directory %q: its name is no UTF-8, which every path of a policy is; rename it, or start elsewhere", cwd)
	}
	if o.workspace == "" {
		real, err := filepath.EvalSymlinks(cwd)
		if err != nil {
			return "", "", fmt.Errorf("cannot resolve the current directory: %w", err)
		}
		cwd = spelled(cwd, real)
		if o.policyFile != "" {
			return cwd, cwd, nil // what is writable was written down on purpose
		}
		return cwd, cwd, checkWorkspace(real, resolved(getenv(s.Environ, "HOME")))
	}
	workspace = absolute(cwd, o.workspace)
	if !within(cwd, []string{workspace}) {
		cwd = workspace
	}
	return workspace, cwd, nil
}

// spelled keeps the name that the shell has for the current directory, unless the
// helper would refuse it for a link that a confined command could have made (one in
// /tmp, say). Where we stand is no question of names.
func spelled(cwd, real string) string {
	if cwd == real {
		return cwd
	}
	reached, err := roots.Survey([]string{cwd}, roots.Writability{Paths: []string{real}, Shared: roots.SharedDirs(nil)})
	if err != nil {
		return real
	}
	reached.Close()
	return cwd
}

func resolved(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}

func absolute(cwd, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(cwd, path)
}

func absolutes(cwd string, paths []string) []string {
	out := make([]string, 0, len(paths))
	for _, p := range paths {
		out = append(out, absolute(cwd, p))
	}
	return out
}
