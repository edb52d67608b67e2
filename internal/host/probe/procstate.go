package probe

import "strings"

// procState reads a mountinfo file for what makes the kernel refuse a fresh /proc:
// mounts over parts of it, and options that hide some of it.
func procState(mountinfo string) (covered bool, options string) {
	for _, line := range strings.Split(mountinfo, "\n") {
		fields := strings.Fields(line)
		if len(fields) < 7 {
			continue
		}
		switch point := fields[4]; {
		case point == "/proc":
			options = hiding(fields[5] + "," + fields[len(fields)-1])
		case strings.HasPrefix(point, "/proc/sys/fs/binfmt_misc"):
			// An empty directory made to be mounted on: it hides nothing.
		case strings.HasPrefix(point, "/proc/"):
			covered = true
		}
	}
	return covered, options
}

func hiding(options string) string {
	var out []string
	for _, o := range strings.Split(options, ",") {
		name, value, _ := strings.Cut(o, "=")
		switch {
		case name == "hidepid" && value != "0" && value != "off", name == "subset", o == "ro":
			if len(out) == 0 || out[len(out)-1] != o {
				out = append(out, o)
			}
		}
	}
	return strings.Join(out, ",")
}
