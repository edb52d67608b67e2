package cgroup

import (
	"errors"
	"io"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// dir is a cgroup's directory, held open: a path could be made to name another one.
type dir struct {
	f    *os.File
	path string // for messages
}

// openDir opens a directory at path below the directory at (or unix.AT_FDCWD).
// With unix.O_PATH in flags nothing but the way to it needs a permission.
func openDir(at int, path string, flags int) (*os.File, error) {
	fd, err := retry(func() (int, error) {
		return unix.Openat(at, path, flags|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), path), nil
}

func retry(call func() (int, error)) (int, error) {
	for {
		if n, err := call(); !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}

func (d dir) fd() int { return int(d.f.Fd()) }

// groupMode is an execution's cgroup's: whoever can open it can hold its lock. It is taken
// back, and so are the modes of the files by which its end is made: without a jail the
// command has the rights of their owner, and Landlock knows none for chmod. A counter that
// was closed is told as such.
const groupMode = 0o700

// open opens one of the cgroup's files. Never with O_CREAT: for a file that this
// kernel does not have, cgroupfs would then answer EACCES and not ENOENT.
func (d dir) open(name string, flags int) (*os.File, error) {
	call := func() (int, error) { return unix.Openat(d.fd(), name, flags|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0) }
	fd, err := retry(call)
	if errors.Is(err, unix.EACCES) && isName(path.Base(d.path)) {
		_ = unix.Fchmod(d.fd(), groupMode)
		if strings.HasPrefix(name, "cgroup.") {
			_ = unix.Fchmodat(d.fd(), name, 0o600, 0)
		}
		fd, err = retry(call)
	}
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: d.path + "/" + name, Err: err}
	}
	return os.NewFile(uintptr(fd), d.path+"/"+name), nil
}

// maxRead bounds what is read of a file, in bytes. A list of all the pids that there can
// be fits (PID_MAX_LIMIT, seven digits each): one cut short would end in another number.
const maxRead = 64 << 20

func (d dir) read(name string) (string, error) {
	f, err := d.open(name, unix.O_RDONLY)
	if err != nil {
		return "", err
	}
	defer f.Close()
	return readAll(f)
}

func readAll(f *os.File) (string, error) {
	b, err := io.ReadAll(io.LimitReader(f, maxRead))
	return string(b), err
}

// write writes data with one call: each write to a cgroup file is one command.
func (d dir) write(name, data string) error {
	f, err := d.open(name, unix.O_WRONLY)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteString(data)
	return err
}

// fields reads a file as words.
func (d dir) fields(name string) ([]string, error) {
	s, err := d.read(name)
	return strings.Fields(s), err
}

// writable is nil where the effective user may write to name ("." for the directory).
func (d dir) writable(name string) error {
	return unix.Faccessat(d.fd(), name, unix.W_OK, unix.AT_EACCESS)
}

func (d dir) has(name string) bool {
	var st unix.Stat_t
	return unix.Fstatat(d.fd(), name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil
}

// children lists the names of the cgroups right below.
func (d dir) children() ([]string, error) {
	f, err := openDir(d.fd(), ".", unix.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	entries, err := f.ReadDir(-1)
	var names []string
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names, err
}

// child opens a cgroup right below.
func (d dir) child(name string) (dir, error) {
	f, err := openDir(d.fd(), name, unix.O_RDONLY|unix.O_NOFOLLOW)
	if errors.Is(err, unix.EACCES) && isName(name) && unix.Fchmodat(d.fd(), name, groupMode, 0) == nil {
		f, err = openDir(d.fd(), name, unix.O_RDONLY|unix.O_NOFOLLOW)
	}
	return dir{f, d.path + "/" + name}, err
}
