//go:build linux || darwin

package gitidentity

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path"
	"runtime"
	"slices"

	"golang.org/x/sys/unix"

	"sandboxd/internal/host"
	"sandboxd/internal/plan"
	"sandboxd/internal/policy"
	"sandboxd/internal/roots"
)

// The fixed destination, below the workspace.
const (
	homeDir  = ".sandboxd/home"
	fileName = "gitconfig"
)

// Publish writes the file. Readers see the whole old or the whole new one.
func Publish(r Request) error {
	text, err := r.Render()
	if err != nil {
		return err
	}
	dir, err := r.destination()
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := replace(int(dir.Fd()), fileName, text); err != nil {
		return fmt.Errorf("cannot write %q: %w", path.Join(r.Workspace, homeDir, fileName), err)
	}
	return nil
}

// destination opens the directory, after asking the plan whether a command of this
// policy could write the host's file there.
func (r Request) destination() (*os.File, error) {
	f := host.Facts{OS: runtime.GOOS, UID: os.Getuid(), GID: os.Getgid(), Home: os.Getenv("HOME"), SSHAuth: os.Getenv("SSH_AUTH_SOCK")}
	home := path.Join(r.Workspace, homeDir)
	reached, err := roots.Survey(append(plan.Paths(r.Policy, f), home), roots.Writability{
		Paths: policy.Writable(r.Policy), Shared: roots.SharedDirs(nil),
	})
	if err != nil {
		return nil, err
	}
	defer reached.Close()
	f.Layout = reached.Layout()
	p, err := plan.Build(r.Policy, f)
	if err != nil {
		return nil, err
	}
	res := f.Layout.Resolve(home)
	switch {
	case res.Err != nil:
		return nil, fmt.Errorf("cannot reach %q: %w", home, res.Err)
	case res.Node.Kind == host.Missing:
		return nil, fmt.Errorf("cannot publish to %q: it does not exist; the broker makes it", home)
	case res.Node.Kind != host.Dir:
		return nil, fmt.Errorf("cannot publish to %q: it is not a directory that this user can reach", home)
	}
	if err := r.granted(p, res, home); err != nil {
		return nil, err
	}
	return reached.Dup(res.Path)
}

// granted asks the plan, and refuses links below the granted root.
func (r Request) granted(p plan.Plan, res host.Resolution, home string) error {
	for _, at := range []string{res.Path, host.Join(res.Path, fileName)} {
		if p.At(at).Effect != plan.ReadWrite {
			return fmt.Errorf("cannot publish to %q: the policy gives no command the right to write the host's file there (%s)", home, p.At(at).Effect)
		}
	}
	if slices.Contains(r.Policy.Protected, path.Join(home, fileName)) {
		// A link at the destination would take the mask elsewhere.
		return fmt.Errorf("cannot publish to %q: the policy protects the file", home)
	}
	root := p.At(res.Path).Op
	for _, hop := range res.Links {
		if host.Beneath(hop.Path, root.Path) || host.Beneath(hop.Path, r.Workspace) {
			return fmt.Errorf("cannot publish to %q: %q is a symbolic link", home, hop.Path)
		}
	}
	return nil
}

// replace puts a new file of mode 0600 in the place of whatever entry is there: a
// link or another hard link is replaced, never followed.
func replace(dir int, name string, text []byte) error {
	tmp := "." + name + "." + rand.Text()
	fd, err := unix.Openat(dir, tmp, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), tmp)
	_, err = f.Write(text)
	err = errors.Join(err, unix.Fchmod(fd, 0o600), f.Close()) // whatever the umask
	if err == nil {
		err = unix.Renameat(dir, tmp, dir, name)
	}
	if err != nil {
		return errors.Join(err, unix.Unlinkat(dir, tmp, 0))
	}
	return nil
}
