//go:build linux

package attack

import (
	"fmt"
	"os"
	"path/filepath"
	"unsafe"

	"golang.org/x/sys/unix"
)

// suidAttacks leave a file that lends the caller's rights to every user of the host.
func suidAttacks() []attack {
	list := []attack{}
	way := func(name, needs string, do func(file string) error) {
		list = append(list, attack{name: "privilege: a set-user-ID file by " + name, needs: needs, do: func(w *world) error {
			file := w.Base + "/ws/suid-" + safe(w.name)
			defer os.Remove(file)
			if err := do(file); err != nil {
				return err
			}
			st, err := os.Lstat(file)
			if err == nil && st.Mode()&os.ModeSetuid == 0 {
				err = errMissed
			}
			return err
		}})
	}
	change := func(name, needs string, do func(file string, fd int) error) {
		way(name, needs, func(file string) error {
			fd, err := unix.Open(file, unix.O_CREAT|unix.O_RDWR, 0o755)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			return do(file, fd)
		})
	}
	closed := func(fd int, err error) error {
		if err == nil {
			unix.Close(fd)
		}
		return err
	}
	change("chmod", "", func(file string, _ int) error { return unix.Chmod(file, 0o4755) })
	change("chmod with high bits", "", func(file string, _ int) error {
		name, _ := unix.BytePtrFromString(file)
		_, err := call(unix.SYS_FCHMODAT, ^uintptr(99), uintptr(unsafe.Pointer(name)), 1<<32|0o4755, 0, 0, 0)
		return err
	})
	change("fchmod", "", func(_ string, fd int) error { return unix.Fchmod(fd, 0o4755) })
	change("fchmodat2", "fchmodat2", func(file string, _ int) error {
		name, _ := unix.BytePtrFromString(file)
		_, err := call(452, ^uintptr(99), uintptr(unsafe.Pointer(name)), 0o4755, 0, 0, 0) // AT_FDCWD
		return err
	})
	change("chmod through /proc", "", func(_ string, fd int) error { return unix.Chmod(fdName(fd), 0o6755) })
	way("open", "", func(file string) error {
		return closed(unix.Open(file, unix.O_CREAT|unix.O_WRONLY, 0o4755))
	})
	way("openat2", "openat2", func(file string) error {
		return closed(unix.Openat2(unix.AT_FDCWD, file, &unix.OpenHow{Flags: unix.O_CREAT | unix.O_WRONLY, Mode: 0o4755}))
	})
	way("O_TMPFILE and linkat", "O_TMPFILE", func(file string) error {
		fd, err := unix.Open(filepath.Dir(file), unix.O_TMPFILE|unix.O_WRONLY, 0o4755)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return unix.Linkat(unix.AT_FDCWD, fdName(fd), unix.AT_FDCWD, file, unix.AT_SYMLINK_FOLLOW)
	})
	way("mknod", "", func(file string) error { return unix.Mknod(file, unix.S_IFREG|0o4755, 0) })
	way("a link to the host's", "a set-user-ID file on the same file system", func(file string) error {
		return until([]string{"/usr/bin/su", "/usr/bin/passwd", "/usr/bin/mount"}, func(of string) error { return os.Link(of, file) })
	})
	return list
}

func fdName(fd int) string { return fmt.Sprintf("/proc/self/fd/%d", fd) }
