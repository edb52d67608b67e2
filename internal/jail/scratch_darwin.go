package jail

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Private scratches lie here and not below TMPDIR: that is one of the user's own
// directories, which every jail may write, so one execution would see another's.
const scratchBase = "/private/tmp"

// scratchDir is a private scratch and the file beside it that no profile opens. The
// file is locked for as long as the execution lasts.
type scratchDir struct {
	dir     string
	witness *os.File
}

// tries is how often another helper's sweep may come between a file and its lock.
const tries = 20

// newScratch makes both, for this user alone.
func newScratch() (*scratchDir, error) {
	for range tries {
		w, err := os.CreateTemp(scratchBase, scratchPrefix+"*"+witnessSuffix) // mode 0600
		if err != nil {
			return nil, fmt.Errorf("cannot make a private scratch: %w", err)
		}
		if !locked(w) { // a sweep took it for a leftover, and removes it
			w.Close()
			continue
		}
		s := &scratchDir{dir: strings.TrimSuffix(w.Name(), witnessSuffix), witness: w}
		if err := os.Mkdir(s.dir, 0o700); err != nil {
			return nil, errors.Join(fmt.Errorf("cannot make a private scratch: %w", err), os.Remove(w.Name()), w.Close())
		}
		return s, nil
	}
	return nil, fmt.Errorf("cannot make a private scratch in %q: other helpers keep removing it; run again", scratchBase)
}

// locked takes the lock, and says whether the name still leads to the locked file.
func locked(w *os.File) bool {
	if unix.Flock(int(w.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		return false
	}
	var held, named unix.Stat_t
	return unix.Fstat(int(w.Fd()), &held) == nil && unix.Lstat(w.Name(), &named) == nil && held.Dev == named.Dev && held.Ino == named.Ino
}

// beside makes a file of this user's alone that the sweep finds with the scratch.
func (s *scratchDir) beside(what string) (*os.File, error) {
	return os.CreateTemp(scratchBase, filepath.Base(s.dir)+"-*"+what) // mode 0600
}

// remove takes the scratch with all in it away. It follows no link.
func (s *scratchDir) remove() error {
	if s == nil {
		return nil
	}
	for _, name := range namesInBase() {
		if liesBeside(name, filepath.Base(s.dir)) {
			_ = os.Remove(filepath.Join(scratchBase, name))
		}
	}
	err := os.RemoveAll(s.dir)
	if err != nil {
		s.open()
		err = os.RemoveAll(s.dir)
	}
	if err != nil {
		err = fmt.Errorf("cannot remove the scratch %q: %w", s.dir, err)
	} else {
		err = os.Remove(s.witness.Name())
	}
	return errors.Join(err, s.witness.Close())
}

// open gives every directory its bits back: one without a search or write bit is the
// owner's to open again. A survivor may put links in the way, so none is followed out.
func (s *scratchDir) open() {
	_ = unix.Fchmodat(unix.AT_FDCWD, s.dir, 0o700, unix.AT_SYMLINK_NOFOLLOW)
	root, err := os.OpenRoot(s.dir)
	if err != nil {
		return
	}
	defer root.Close()
	var down func(dir string)
	down = func(dir string) {
		_ = root.Chmod(dir, 0o700) // before it is read
		names, _ := fs.ReadDir(root.FS(), dir)
		for _, d := range names {
			if d.IsDir() {
				down(path.Join(dir, d.Name()))
			}
		}
	}
	down(".")
}

// namesInBase lists what lies where the scratches do.
func namesInBase() []string {
	d, err := os.Open(scratchBase)
	if err != nil {
		return nil
	}
	defer d.Close()
	names, _ := d.Readdirnames(-1)
	return names
}

// sweepScratch removes the scratches of helpers that were killed: those of this user
// whose lock can be had.
func sweepScratch() {
	for _, witness := range namesInBase() {
		if scratch, ok := scratchOf(witness); ok {
			sweepOne(filepath.Join(scratchBase, scratch), filepath.Join(scratchBase, witness))
		}
	}
}

func sweepOne(dir, witness string) {
	fd, err := unix.Open(witness, unix.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	f := os.NewFile(uintptr(fd), witness)
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil || int(st.Uid) != os.Getuid() || st.Mode&unix.S_IFMT != unix.S_IFREG ||
		unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) != nil {
		f.Close()
		return
	}
	_ = (&scratchDir{dir: dir, witness: f}).remove()
}
