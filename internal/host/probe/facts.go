package probe

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"sandboxd/internal/host"
)

// Deadline is how long bubblewrap's trial may take.
const Deadline = 30 * time.Second

// Options is what the operator decided.
type Options struct {
	Bwrap             string // explicit path of bubblewrap, "" for the trusted places
	AllowNestedUserns bool
	Deadline          time.Duration // of bubblewrap's trial; 0 for Deadline
}

// Facts asks this machine for everything but the layout. The only error is an
// explicit bubblewrap that cannot be used; whatever else is lacking is a fact. The end
// of ctx ends bubblewrap's trial, and leaves it unknown whether it works. On Linux the
// trial is made by this program under the argument Role, for which Main must answer.
func Facts(ctx context.Context, o Options) (host.Facts, error) {
	f := process(o)
	if o.Deadline == 0 {
		o.Deadline = Deadline
	}
	return f, fill(ctx, &f, o)
}

// process gives the facts of this process.
func process(o Options) host.Facts {
	return host.Facts{
		OS:                runtime.GOOS,
		UID:               os.Getuid(),
		GID:               os.Getgid(),
		Home:              os.Getenv("HOME"),
		SSHAuth:           os.Getenv("SSH_AUTH_SOCK"),
		HelperPath:        imagePath(),
		AllowNestedUserns: o.AllowNestedUserns,
	}
}

// imagePath is the physical path of this program, "" where it cannot be told.
func imagePath() string {
	path, err := os.Executable()
	if err != nil {
		return ""
	}
	path, err = filepath.EvalSymlinks(path)
	if err != nil {
		return ""
	}
	return path
}
