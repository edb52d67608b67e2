package probe

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
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
		Services:          services(os.Environ()),
		HelperPath:        imagePath(),
		AllowNestedUserns: o.AllowNestedUserns,
	}
}

// services lists the absolute paths that variables name, in the ways in which programs
// tell others of their sockets: PATH, unix:PATH, unix:path=PATH,guid=X and the same behind
// others, separated by semicolons (the D-Bus specification, "Server Addresses"),
// unix://PATH, and PATH,PID,N as tmux does. Whether there is a socket is for the survey
// to say: a command may have closed its directory, to open it again in the next run.
func services(environ []string) (found []host.Service) {
	for _, v := range environ {
		name, value, _ := strings.Cut(v, "=")
		for _, address := range strings.Split(value, ";") {
			found = service(found, name, address)
		}
	}
	return found
}

func service(found []host.Service, name, value string) []host.Service {
	if i := strings.Index(value, "unix:"); i >= 0 {
		value = strings.TrimPrefix(value[i+len("unix:"):], "//")
		for _, key := range strings.Split(value, ",") {
			if path, ok := strings.CutPrefix(key, "path="); ok {
				value = path
			}
		}
	}
	value, _, _ = strings.Cut(value, ",")
	if len(value) < 2 || len(value) > 4095 || value[0] != '/' || filepath.Clean(value) != value || strings.ContainsAny(value, "\x00:") || len(found) == maxServices {
		return found
	}
	if info, err := os.Stat(value); err == nil && info.Mode()&os.ModeSocket != 0 || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		found = append(found, host.Service{Variable: name, Path: value})
	}
	return found
}

// maxServices bounds what is looked at of an environment.
const maxServices = 64

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
