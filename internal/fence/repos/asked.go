package repos

import "path/filepath"

// Asked says whether a policy guards the repositories of a directory, and so asks what
// became of them: it keeps hooks and config of one directory there, or a .git file, or
// what a workspace without a repository has. kept are the paths that are read-only or
// protected.
func Asked(dir string, kept []string) bool {
	hooks, config := map[string]bool{}, map[string]bool{}
	for _, path := range kept {
		if !beneath(path, dir) {
			continue
		}
		at, name := filepath.Split(path)
		switch name {
		case ".git", ".mcp.json":
			return true
		case "hooks":
			hooks[at] = true
		case "config":
			config[at] = true
		}
		if hooks[at] && config[at] {
			return true
		}
	}
	return false
}
