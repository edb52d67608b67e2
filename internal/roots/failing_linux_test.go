package roots

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"sandboxd/internal/plan"
	"sandboxd/internal/testenv"
)

// failing lets every look at a name fail, as one on a broken disk does: the first of
// them, or all.
func failing(t *testing.T, name string, once bool) {
	t.Helper()
	t.Cleanup(func() { lookAt = open })
	lookAt = func(parent int, at string) (object, error) {
		if at != name {
			return open(parent, at)
		}
		if once {
			lookAt = open
		}
		return object{fd: noFD}, unix.EIO
	}
}

// What cannot be looked at does not count as absent: a second name is one, and where a
// command may write, a link in it is not followed.
func TestLookThatFails(t *testing.T) {
	dir := testDir(t)
	build(t, dir, "keys/sub/", "other/name/", "shared/tree/", "target/", "shared/tree/link -> ../../target", "proc/in/")
	in := func(p string) string { return filepath.Join(dir, p) }

	failing(t, "tree", true)
	r, err := Survey([]string{in("shared/tree/link")}, Writability{Shared: []string{in("shared/tree")}})
	var refusal *plan.Refusal
	if !errors.As(err, &refusal) {
		t.Errorf("a link in what could not be looked at was followed: %v", err)
		r.Close()
	}
	r, err = Survey([]string{in("shared/tree/link")}, Writability{})
	must(t, err) // the control
	r.Close()

	if os.Getuid() != 0 {
		testenv.Skip(t, "root", "only root mounts")
	}
	must(t, unix.Mount(in("keys"), in("other/name"), "", unix.MS_BIND, ""))
	defer unix.Unmount(in("other/name"), unix.MNT_DETACH)
	failing(t, "name", false)
	r, err = Survey([]string{in("keys/sub")}, Writability{Narrow: []string{in("keys/sub")}})
	must(t, err)
	if got := r.aliases[in("keys/sub")]; !slices.Equal(got, []string{in("other/name/sub")}) {
		t.Errorf("second names %q", got)
	}
	r.Close()

	must(t, unix.Mount("proc", in("proc/in"), "proc", 0, ""))
	defer unix.Unmount(in("proc/in"), unix.MNT_DETACH)
	for _, fails := range []bool{true, false} {
		lookAt = open
		if fails {
			failing(t, "in", false)
		}
		r, err = Survey([]string{in("proc")}, Writability{Paths: []string{in("proc")}})
		if (err != nil) != fails {
			t.Errorf("fails %v: %v", fails, err)
		}
		if err == nil {
			if len(r.kernel) != 1 {
				t.Errorf("the kernel's mounts: %v", r.kernel)
			}
			r.Close()
		}
	}

	var p Private
	must(t, os.WriteFile(in("keys/key"), []byte("x"), 0o600))
	must(t, os.Chmod(in("keys"), 0o755))
	fstatat = func(dir int, name string, st *unix.Stat_t, flags int) error {
		if name == "key" {
			return unix.EIO
		}
		return unix.Fstatat(dir, name, st, flags)
	}
	defer func() { fstatat = unix.Fstatat }()
	if found, _, err := p.Below([]string{in("keys")}); !errors.Is(err, unix.EIO) {
		t.Errorf("%q, %v", found, err)
	}
	fstatat = unix.Fstatat
	if found, _, err := p.Below([]string{in("keys")}); err != nil || !slices.Equal(found, []string{in("keys/key")}) {
		t.Errorf("afterwards: %q, %v", found, err)
	}
}
