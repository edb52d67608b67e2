package repos

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
)

// Shut is a directory with what could not be looked at, though git, or a command of the
// same user, can use it: git knows the names that it wants, and needs no right to list
// them; the owner gives that right to whom they please, and takes it away.
type Shut struct {
	Dir string
	Err error
}

// ErrMore says that a directory has more entries than are looked at.
var ErrMore = errors.New("it has more entries than are looked at")

// Absent says whether an error is of what is not there: git finds nothing there either.
func Absent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ELOOP)
}

// Usable gives what kept from looking into a directory, err or that nothing in it can be
// reached. It is nil where the same keeps everything of this user from it: whoever may
// not search a directory, and does not own it, finds nothing in it by any name.
func Usable(dir string, err error) error {
	_, search := os.Lstat(dir + "/.")
	if err == nil {
		err = search
	}
	if err == nil || Absent(err) || search != nil && !Owned(dir) {
		return nil
	}
	return err
}

// Cause is an error without the path.
func Cause(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}

// Describe says what that means after a command.
func (s Shut) Describe() string {
	if errors.Is(s.Err, fs.ErrPermission) {
		return fmt.Sprintf("%q could not be looked at (%v), so that what the command made in it is not known; `chmod u+rwx` it and look at it before you use git there", s.Dir, Cause(s.Err))
	}
	return fmt.Sprintf("%q could not be looked at whole (%v), so that what the command made in it is not known; look at it before you use git there", s.Dir, Cause(s.Err))
}

// Kept says what a command may write, and what in it not: of what could not be looked at
// before and is its own to change, Changes has to say so.
func (s State) Kept(writable, kept []string) {
	for dir := range s.shut {
		holds := func(path string) bool { return dir == path || beneath(dir, path) }
		inside := func(path string) bool { return holds(path) && beneath(path, s.top) }
		if slices.ContainsFunc(writable, holds) && !slices.ContainsFunc(kept, inside) {
			delete(s.shut, dir)
		}
	}
}

// beneath says whether a path is below a directory, not that directory itself.
func beneath(path, dir string) bool {
	return path != dir && strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}
