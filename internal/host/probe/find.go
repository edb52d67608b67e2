package probe

import (
	"fmt"
	"os"
	"path/filepath"
)

// trusted is where bubblewrap may be taken from. PATH is never searched: whoever
// sets it would choose the program that builds the jail.
var trusted = []string{
	"/usr/bin/bwrap",
	"/usr/local/bin/bwrap",
	"/run/wrappers/bin/bwrap",
	"/run/current-system/sw/bin/bwrap",
}

// FindBwrap gives the path of bubblewrap, or "" where the trusted places have none.
// An explicit path is taken as it is; one that is no executable file is an error.
func FindBwrap(explicit string) (string, error) {
	if explicit == "" {
		return find(trusted), nil
	}
	if !filepath.IsAbs(explicit) {
		return "", fmt.Errorf("cannot use bubblewrap %q: give an absolute path", explicit)
	}
	info, err := os.Stat(explicit)
	if err != nil {
		return "", fmt.Errorf("cannot use bubblewrap: %w", err)
	}
	if !executable(info) {
		return "", fmt.Errorf("cannot use bubblewrap %q: it is not an executable file", explicit)
	}
	return explicit, nil
}

func find(places []string) string {
	for _, path := range places {
		if info, err := os.Stat(path); err == nil && executable(info) {
			return path
		}
	}
	return ""
}

func executable(info os.FileInfo) bool {
	return info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0
}
