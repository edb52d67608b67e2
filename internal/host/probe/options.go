package probe

import "strings"

// parseHelp gives the options that a help text lists, without "--".
func parseHelp(text string) map[string]bool {
	flags := map[string]bool{}
	for _, line := range strings.Split(text, "\n") {
		fields := strings.Fields(line)
		if len(fields) == 0 || !strings.HasPrefix(line, " ") {
			continue
		}
		name, ok := strings.CutPrefix(fields[0], "--")
		if ok && isOption(name) {
			flags[name] = true
		}
	}
	return flags
}

func isOption(name string) bool {
	for _, c := range name {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return name != ""
}

// parseVersion gives the number of "bubblewrap 0.8.0", or "".
func parseVersion(text string) string {
	fields := strings.Fields(text)
	if len(fields) < 2 || fields[0] != "bubblewrap" {
		return ""
	}
	return fields[1]
}

// trialArgs are the arguments of the trial: those of a real execution that can fail
// on a host, over a view that only has what the loader of exec needs. Info is the
// descriptor that learns init's pid.
func trialArgs(flags map[string]bool, nested bool, info, exec string) []string {
	args := []string{"--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-net"}
	add := func(flag string, rest ...string) {
		if flags[flag] {
			args = append(append(args, "--"+flag), rest...)
		}
	}
	add("unshare-cgroup")
	if !nested {
		add("disable-userns")
	}
	args = append(args, "--die-with-parent", "--cap-drop", "ALL")
	add("info-fd", info)
	for _, dir := range []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc", "/opt", "/nix/store", "/gnu/store"} {
		args = append(args, "--ro-bind-try", dir, dir)
	}
	args = append(args, "--proc", "/proc", "--remount-ro", "/proc", "--dev", "/dev")
	if flags["size"] && flags["perms"] {
		args = append(args, "--size", "65536", "--perms", "1777", "--tmpfs", "/dev/shm")
	}
	args = append(args, "--remount-ro", "/dev", "--remount-ro", "/")
	return append(args, "--", exec, "--version")
}
