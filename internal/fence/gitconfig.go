package fence

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// gitConfig reads one configuration file with git's own parser, includes not
// followed. Reading a named file runs nothing, and "/" as directory keeps any
// repository out of it. Without git, or for an unreadable file, it is empty: then
// git reads nothing there either.
func gitConfig(file string) map[string][]string {
	if info, err := os.Lstat(file); err != nil || !info.Mode().IsRegular() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "git", "config", "--file", file, "--no-includes", "-z", "--list")
	cmd.Dir = "/"
	out, err := cmd.Output()
	if err != nil {
		return nil
	}
	values := map[string][]string{}
	for entry := range strings.SplitSeq(string(out), "\x00") {
		if key, value, ok := strings.Cut(entry, "\n"); ok {
			values[key] = append(values[key], value)
		}
	}
	return values
}

// maxIncludes bounds the configuration files that are followed.
const maxIncludes = 16

// configured lists what a configuration file, and what it includes, makes git read
// as configuration or run as hooks, with relative paths taken as git takes them.
func configured(file, top, home string) (paths []string) {
	todo, seen := []string{file}, map[string]bool{}
	for len(todo) > 0 && len(seen) < maxIncludes {
		at := todo[0]
		todo = todo[1:]
		if seen[at] {
			continue
		}
		seen[at] = true
		for key, values := range gitConfig(at) {
			for _, v := range values {
				switch {
				case key == "core.hookspath":
					paths = append(paths, expand(v, top, home))
				case key == "include.path", strings.HasPrefix(key, "includeif.") && strings.HasSuffix(key, ".path"):
					inc := expand(v, filepath.Dir(at), home)
					paths = append(paths, inc)
					todo = append(todo, inc)
				}
			}
		}
	}
	return paths
}

func expand(path, dir, home string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		return filepath.Join(home, rest)
	}
	return joined(dir, path)
}
