package probe

import (
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sandboxd/internal/host"
)

// bubblewrap asks a bubblewrap what it is and tries it, once per process.
func bubblewrap(path string, o Options) host.Bwrap {
	if path == "" {
		return host.Bwrap{State: host.Absent, Reason: "there is no bubblewrap at " + strings.Join(trusted, ", ") + "; install the package bubblewrap, or name one with --bwrap"}
	}
	b := host.Bwrap{Path: path}
	image, err := os.OpenFile(path, unix.O_PATH, 0)
	if err != nil {
		b.Reason = "cannot open bubblewrap: " + err.Error()
		return b
	}
	defer image.Close()
	if info, err := image.Stat(); err == nil {
		b.Setuid = info.Mode()&os.ModeSetuid != 0
	}
	// A helper is always a subreaper: the trial's init falls to it and is reaped.
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	end := time.Now().Add(o.Deadline)
	version := run(path, []string{"--version"}, nil, end)
	b.Version = parseVersion(version.stdout)
	help := run(path, []string{"--help"}, nil, end)
	b.Flags = parseHelp(help.stdout + help.Stderr)
	if len(b.Flags) == 0 {
		b.State, b.Reason = Classify(help.Attempt, Kernel{})
		if b.State == host.Works {
			b.State, b.Reason = host.Unsure, "the help text of bubblewrap names no options; is it bubblewrap?"
		}
		return b
	}
	// It executes its own image: the one program that is sure to be here, by
	// descriptor, as stage 2 is.
	args := trialArgs(b.Flags, o.AllowNestedUserns, "4", "/proc/self/fd/3")
	b.State, b.Reason = Classify(run(path, args, image, end).Attempt, readKernel())
	return b
}
