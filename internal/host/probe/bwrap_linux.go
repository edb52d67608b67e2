package probe

import (
	"context"
	"os"

	"golang.org/x/sys/unix"

	"sandboxd/internal/host"
)

// bubblewrap asks a bubblewrap what it is and tries it, once per process.
func bubblewrap(ctx context.Context, path string, o Options) host.Bwrap {
	if path == "" {
		return noBubblewrap()
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
	said, err := ask(ctx, path, o)
	if err != nil {
		b.Reason = err.Error()
		return b
	}
	b.Version, b.Flags, b.State, b.Cause, b.Reason = said.Version, said.Flags, said.State, said.Cause, said.Reason
	return b
}

// try runs bubblewrap: its version, its help, its trial.
func try(ctx context.Context, path string, nested bool) answer {
	var a answer
	image, err := os.OpenFile(path, unix.O_PATH, 0)
	if err != nil {
		a.Reason = "cannot open bubblewrap: " + err.Error()
		return a
	}
	defer image.Close()
	version := run(ctx, path, []string{"--version"}, nil)
	a.Version = parseVersion(version.stdout)
	help := run(ctx, path, []string{"--help"}, nil)
	a.Flags = parseHelp(help.stdout + help.Stderr)
	if len(a.Flags) == 0 {
		a.State, a.Cause, a.Reason = Classify(help.Attempt, Kernel{})
		if a.State == host.Works {
			a.State, a.Reason = host.Unsure, "the help text of bubblewrap names no options; is it bubblewrap?"
		}
		return a
	}
	// It executes its own image: the one program that is sure to be here, by
	// descriptor, as stage 2 is.
	args := trialArgs(a.Flags, nested, "4", "/proc/self/fd/3")
	trial, kernel := run(ctx, path, args, image).Attempt, ReadKernel()
	// A container's filter is there in any case, and may have nothing to do with it. A
	// trial that it killed says so by itself.
	kernel.Filtered = kernel.Filtered && trial.Exit <= 128 && filterDenies()
	a.State, a.Cause, a.Reason = Classify(trial, kernel)
	return a
}
