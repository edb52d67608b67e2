package jail

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Private scratches lie here and not below TMPDIR: that is one of the user's own
// directories, which every jail may write, so one execution would see another's.
const (
	scratchBase   = "/private/tmp"
	scratchPrefix = "sandboxd-scratch-"
	witnessSuffix = ".witness"
)

// scratchDir is a private scratch and the file beside it that no profile opens. The
// file is locked for as long as the execution lasts.
type scratchDir struct {
	dir     string
	witness *os.File
}

// newScratch makes both, for this user alone.
func newScratch() (*scratchDir, error) {
	w, err := os.CreateTemp(scratchBase, scratchPrefix+"*"+witnessSuffix) // mode 0600
	if err != nil {
		return nil, fmt.Errorf("cannot make a private scratch: %w", err)
	}
	s := &scratchDir{dir: strings.TrimSuffix(w.Name(), witnessSuffix), witness: w}
	if err := unix.Flock(int(w.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot lock %q: %w", w.Name(), err), s.remove())
	}
	if err := os.Mkdir(s.dir, 0o700); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot make a private scratch: %w", err), os.Remove(w.Name()), w.Close())
	}
	return s, nil
}

// remove takes the scratch with all in it away. It follows no link.
func (s *scratchDir) remove() error {
	if s == nil {
		return nil
	}
	err := os.RemoveAll(s.dir)
	if err != nil {
		// A directory without a search or write bit is the owner's to open again.
		_ = filepath.WalkDir(s.dir, func(path string, d os.DirEntry, _ error) error {
			if d != nil && d.IsDir() {
				_ = os.Chmod(path, 0o700)
			}
			return nil
		})
		err = os.RemoveAll(s.dir)
	}
	if err != nil {
		err = fmt.Errorf("cannot remove the scratch %q: %w", s.dir, err)
	} else {
		err = os.Remove(s.witness.Name())
	}
	return errors.Join(err, s.witness.Close())
}

// sweepScratch removes the scratches of helpers that were killed: those of this user
// whose lock can be had.
func sweepScratch() {
	left, _ := filepath.Glob(filepath.Join(scratchBase, scratchPrefix+"*"+witnessSuffix))
	for _, name := range left {
		fd, err := unix.Open(name, unix.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		if err != nil {
			continue
		}
		f := os.NewFile(uintptr(fd), name)
		var st unix.Stat_t
		if unix.Fstat(fd, &st) != nil || int(st.Uid) != os.Getuid() || st.Mode&unix.S_IFMT != unix.S_IFREG ||
			unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) != nil {
			f.Close()
			continue
		}
		_ = (&scratchDir{dir: strings.TrimSuffix(name, witnessSuffix), witness: f}).remove()
	}
}
