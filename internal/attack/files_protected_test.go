//go:build linux

package attack

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// taken moves something with a call and then reads the secret under its new name.
func taken(from, to string, key string, move func(from, to string) error) func(*world) error {
	return func(w *world) error {
		if err := move(w.ws(from), w.ws(to)); err != nil {
			return err
		}
		return w.reads(w.ws(key))
	}
}

func exchange(from, to string) error {
	return unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_EXCHANGE)
}

func rewritten(path func(*world) string, flags int) func(*world) error {
	return func(w *world) error { return put(path(w), flags) }
}

func reading(path func(*world) string) func(*world) error {
	return func(w *world) error { return w.reads(path(w)) }
}

// protectedAttacks are after what a policy protects in a writable root.
func protectedAttacks() []attack {
	env := (*world).env
	variant := func(name, spelled string) attack {
		return attack{name: "protected: read as " + name, do: reading(func(w *world) string { return w.dir("ws") + spelled })}
	}
	return []attack{
		{name: "protected: read a file", do: reading(env)},
		{name: "protected: read in a directory", do: reading((*world).key)},
		{name: "protected: read deep", do: reading((*world).netrc)},
		variant("doubled slashes", "//.env"),
		variant("dots", "/./deep/../.env"),
		variant("a way out and in", "/deep/a/../../.secret/key"),
		{name: "protected: read through /proc/self/root", do: reading(func(w *world) string { return "/proc/self/root" + w.env() })},
		{name: "protected: read through /proc/self/cwd", do: func(w *world) error {
			if err := os.Chdir(w.dir("ws")); err != nil {
				return err
			}
			return w.reads("/proc/thread-self/cwd/.env")
		}},
		{name: "protected: read in other case", needs: "a file system without case", do: reading(func(w *world) string { return w.ws(".ENV") })},
		{name: "protected: read in other normal form", needs: "a file system that normalises", do: func(w *world) error {
			_ = os.WriteFile(w.ws("\u00e9"), []byte(w.Secret), 0o600)
			return w.reads(w.ws("e\u0301"))
		}},
		{name: "protected: list a directory", do: func(w *world) error {
			list, err := os.ReadDir(w.secret())
			if err == nil && len(list) == 0 {
				err = errMissed
			}
			return err
		}},
		{name: "protected: measure a file", do: func(w *world) error {
			st, err := os.Stat(w.env())
			if err == nil && st.Size() != int64(len(w.Secret)) {
				err = errMissed
			}
			return err
		}},
		{name: "protected: map a file", do: func(w *world) error {
			f, err := os.Open(w.env())
			if err != nil {
				return err
			}
			b, err := unix.Mmap(int(f.Fd()), 0, len(w.Secret), unix.PROT_READ, unix.MAP_SHARED)
			if err == nil && string(b) != w.Secret {
				err = errMissed
			}
			return err
		}},
		{name: "protected: sendfile", do: func(w *world) error {
			return w.copied(func(in, out int) (int, error) { return unix.Sendfile(out, in, nil, 4096) })
		}},
		{name: "protected: copy_file_range", do: func(w *world) error {
			return w.copied(func(in, out int) (int, error) { return unix.CopyFileRange(in, nil, out, nil, 4096, 0) })
		}},
		{name: "protected: reopen an O_PATH descriptor", do: func(w *world) error {
			fd, err := unix.Open(w.env(), unix.O_PATH, 0)
			if err != nil {
				return err
			}
			return w.reads(fmt.Sprintf("/proc/self/fd/%d", fd))
		}},
		{name: "protected: openat2 below the directory", do: func(w *world) error {
			dir, err := unix.Open(w.dir("ws"), unix.O_PATH, 0)
			if err != nil {
				return err
			}
			fd, err := unix.Openat2(dir, ".secret/key", &unix.OpenHow{Flags: unix.O_RDONLY, Resolve: unix.RESOLVE_BENEATH})
			if err != nil {
				return err
			}
			return w.reads(fmt.Sprintf("/proc/self/fd/%d", fd))
		}},
		{name: "protected: read through a planted link", do: taken(".env", "link", "link", os.Symlink)},
		{name: "protected: read a second name", do: taken(".env", "second", "second", os.Link)},
		{name: "protected: second name of a descriptor", do: func(w *world) error {
			fd, err := unix.Open(w.env(), unix.O_PATH, 0)
			if err != nil {
				return err
			}
			if err := unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), unix.AT_FDCWD, w.ws("second"), unix.AT_SYMLINK_FOLLOW); err != nil {
				return err
			}
			return w.reads(w.ws("second"))
		}},
		{name: "protected: second name by AT_EMPTY_PATH", needs: "linkat without CAP_DAC_READ_SEARCH", do: func(w *world) error {
			fd, err := unix.Open(w.env(), unix.O_PATH, 0)
			if err != nil {
				return err
			}
			if err := unix.Linkat(fd, "", unix.AT_FDCWD, w.ws("second"), unix.AT_EMPTY_PATH); err != nil {
				return err
			}
			return w.reads(w.ws("second"))
		}},
		{name: "protected: rename a file away", do: taken(".env", "away", "away", os.Rename)},
		{name: "protected: rename a directory away", do: taken(".secret", "away", "away/key", os.Rename)},
		{name: "protected: rename the parent", do: taken("deep/a", "deep/b", "deep/b/.netrc", os.Rename)},
		{name: "protected: rename the grandparent", do: taken("deep", "shallow", "shallow/a/.netrc", os.Rename)},
		{name: "protected: rename the grandparent upwards", do: func(w *world) error {
			to := filepath.Join(w.Base, "ws", "moved-"+w.Nonce)
			if err := os.Rename(w.ws("deep"), to); err != nil {
				return err
			}
			return w.reads(to + "/a/.netrc")
		}},
		{name: "protected: exchange a file", do: taken(".env", "own", "own", exchange)},
		{name: "protected: exchange a directory", do: taken(".secret", "mine", "mine/key", exchange)},
		{name: "protected: exchange the parent", do: taken("deep/a", "mine/a", "mine/a/.netrc", exchange)},
		{name: "protected: exchange the grandparent", do: taken("deep", "mine", "mine/a/.netrc", exchange)},
		{name: "protected: replace the parent", do: func(w *world) error {
			return steps(func() error { return os.RemoveAll(w.ws("deep")) }, func() error { return os.Mkdir(w.ws("deep"), 0o755) })
		}, after: func(w *world) error { return gone(w.netrc()) }},
		{name: "protected: overwrite", do: rewritten(env, 0), after: changed(env)},
		{name: "protected: append", do: rewritten(env, os.O_APPEND), after: changed(env)},
		{name: "protected: empty by open", do: rewritten(env, os.O_TRUNC), after: changed(env)},
		{name: "protected: truncate", do: func(w *world) error { return os.Truncate(w.env(), 0) }, after: changed(env)},
		{name: "protected: replace by a rename over it", do: func(w *world) error { return os.Rename(w.ws("own"), w.env()) }, after: changed(env)},
		{name: "protected: unlink a file", do: func(w *world) error { return unix.Unlink(w.env()) }, after: changed(env)},
		{name: "protected: unlink in a directory", do: func(w *world) error { return unix.Unlink(w.key()) }, after: changed((*world).key)},
		{name: "protected: make a file in a directory", do: func(w *world) error { return put(w.ws(".secret/new"), os.O_CREATE) }},
		{name: "protected: chmod", do: func(w *world) error { return os.Chmod(w.env(), 0o777) }},
		{name: "protected: chmod a directory", do: func(w *world) error { return os.Chmod(w.secret(), 0o777) }},
		{name: "protected: fchmodat2", needs: "fchmodat2", do: func(w *world) error {
			return unix.Fchmodat(unix.AT_FDCWD, w.env(), 0o777, unix.AT_SYMLINK_NOFOLLOW)
		}},
		{name: "protected: chown to oneself", do: func(w *world) error { return os.Chown(w.env(), os.Getuid(), os.Getgid()) }},
		{name: "protected: set the times", do: func(w *world) error { return unix.Utimes(w.env(), []unix.Timeval{{Sec: 1}, {Sec: 1}}) }},
		{name: "protected: set an attribute", needs: "user attributes", do: func(w *world) error {
			return unix.Setxattr(w.env(), "user.planted", []byte("x"), 0)
		}},
		{name: "protected: read an attribute", needs: "user attributes", do: func(w *world) error {
			b := make([]byte, 4096)
			n, err := unix.Getxattr(w.env(), "user.note", b)
			if err == nil && !strings.Contains(string(b[:n]), w.Secret) {
				err = errMissed
			}
			return err
		}},
		{name: "protected: open by a handle from outside", root: true, do: func(w *world) error { return w.byHandle(w.env(), "env") },
			setup: func(w *world) error { return nil }},
		{name: "protected: lock", do: func(w *world) error {
			fd, err := unix.Open(w.env(), unix.O_RDONLY, 0)
			if err != nil {
				return err
			}
			return unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB)
		}},
	}
}

func (w *world) copied(copy func(in, out int) (int, error)) error {
	in, err := os.Open(w.env())
	if err != nil {
		return err
	}
	out, err := os.Create(w.ws("copied"))
	if err != nil {
		return err
	}
	if _, err := copy(int(in.Fd()), int(out.Fd())); err != nil {
		return err
	}
	return w.reads(w.ws("copied"))
}

// changed says whether a file of the host lost its content.
func changed(path func(*world) string) func(*world) error {
	return func(w *world) error {
		if b, err := os.ReadFile(path(w)); err == nil && string(b) == w.Secret {
			return errMissed
		}
		return nil
	}
}

func gone(path string) error {
	if _, err := os.Lstat(path); err == nil {
		return errMissed
	}
	return nil
}

// byHandle opens a file by its handle, which needs no way to it. The handle was made
// outside and could as well be guessed: it is the inode's number and generation.
func (w *world) byHandle(_ string, which string) error {
	b, err := os.ReadFile(filepath.Join(w.Base, "ws", "handles", which))
	if err != nil {
		return err
	}
	dir, err := unix.Open(filepath.Join(w.Base, "ws"), unix.O_RDONLY, 0)
	if err != nil {
		return err
	}
	fd, err := unix.OpenByHandleAt(dir, unix.NewFileHandle(int32(b[0]), b[1:]), unix.O_RDONLY)
	if err != nil {
		return err
	}
	got := make([]byte, 4096)
	n, err := unix.Read(fd, got)
	if err == nil && !strings.Contains(string(got[:n]), w.Secret) {
		err = errMissed
	}
	return err
}

// missingAttacks make what a policy protects and the host does not have.
func missingAttacks() []attack {
	made := func(name string, path func(*world) string, make func(w *world, path string) error) attack {
		return attack{name: "missing: " + name, do: func(w *world) error { return make(w, path(w)) }, after: func(w *world) error {
			_, err := os.Lstat(path(w))
			return err
		}}
	}
	later := (*world).later
	return []attack{
		made("create", later, func(_ *world, p string) error { return put(p, os.O_CREATE) }),
		made("create alone", later, func(_ *world, p string) error { return put(p, os.O_CREATE|os.O_EXCL) }),
		made("mkdir", later, func(_ *world, p string) error { return os.Mkdir(p, 0o755) }),
		made("symlink", later, func(w *world, p string) error { return os.Symlink(w.ws("own"), p) }),
		made("link", later, func(w *world, p string) error { return os.Link(w.ws("own"), p) }),
		made("rename", later, func(w *world, p string) error { return os.Rename(w.ws("own"), p) }),
		made("rename a directory", later, func(w *world, p string) error { return os.Rename(w.ws("mine"), p) }),
		made("rename without replacing", later, func(w *world, p string) error {
			return unix.Renameat2(unix.AT_FDCWD, w.ws("own"), unix.AT_FDCWD, p, unix.RENAME_NOREPLACE)
		}),
		made("fifo", later, func(_ *world, p string) error { return unix.Mkfifo(p, 0o644) }),
		made("socket", later, func(_ *world, p string) error {
			fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
			if err == nil {
				err = os.Chdir(filepath.Dir(p)) // an address holds 108 bytes
			}
			if err != nil {
				return err
			}
			return unix.Bind(fd, &unix.SockaddrUnix{Name: filepath.Base(p)})
		}),
		made("O_TMPFILE and linkat", later, func(w *world, p string) error {
			fd, err := unix.Open(w.dir("ws"), unix.O_TMPFILE|unix.O_WRONLY, 0o644)
			if err != nil {
				return err
			}
			return unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), unix.AT_FDCWD, p, unix.AT_SYMLINK_FOLLOW)
		}),
		made("with its parents", func(w *world) string { return w.ws("gone/later") }, func(w *world, p string) error {
			if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
				return err
			}
			return put(p, os.O_CREATE)
		}),
		made("by a renamed tree", func(w *world) string { return w.ws("gone/later") }, func(w *world, p string) error {
			return steps(func() error { return os.Mkdir(w.ws("tree"), 0o755) }, func() error { return put(w.ws("tree/later"), os.O_CREATE) },
				func() error { return os.Rename(w.ws("tree"), filepath.Dir(p)) })
		}),
		made("by a linked parent", func(w *world) string { return w.ws("gone/later") }, func(w *world, p string) error {
			return steps(func() error { return os.Mkdir(w.ws("tree"), 0o755) }, func() error { return put(w.ws("tree/later"), os.O_CREATE) },
				func() error { return os.Symlink("tree", filepath.Dir(p)) })
		}),
	}
}

// readableAttacks change what a policy only lets read.
func readableAttacks() []attack {
	f := func(name string, do func(path string, w *world) error) attack {
		return attack{name: "readable: " + name, do: func(w *world) error { return do(w.ro("file"), w) }}
	}
	return []attack{
		f("overwrite", func(p string, _ *world) error { return put(p, 0) }),
		f("empty", func(p string, _ *world) error { return os.Truncate(p, 0) }),
		f("create beside", func(p string, _ *world) error { return put(p+".new", os.O_CREATE) }),
		f("mkdir beside", func(p string, _ *world) error { return os.Mkdir(p+".dir", 0o755) }),
		f("unlink", func(p string, _ *world) error { return os.Remove(p) }),
		f("rename", func(p string, _ *world) error { return os.Rename(p, p+".away") }),
		f("rename into the workspace", func(p string, w *world) error { return os.Rename(p, w.ws("stolen")) }),
		f("exchange with the workspace", func(p string, w *world) error { return exchange(p, w.ws("own")) }),
		f("replace from the workspace", func(p string, w *world) error { return os.Rename(w.ws("own"), p) }),
		f("link into the workspace and write", func(p string, w *world) error {
			if err := os.Link(p, w.ws("second")); err != nil {
				return err
			}
			return put(w.ws("second"), 0)
		}),
		f("write through a planted link", func(p string, w *world) error {
			if err := os.Symlink(p, w.ws("link")); err != nil {
				return err
			}
			return put(w.ws("link"), os.O_TRUNC)
		}),
		f("write through /proc/self/root", func(p string, _ *world) error { return put("/proc/self/root"+p, 0) }),
		f("reopen a descriptor for writing", func(p string, _ *world) error {
			fd, err := unix.Open(p, unix.O_RDONLY, 0)
			if err != nil {
				return err
			}
			return put(fmt.Sprintf("/proc/self/fd/%d", fd), 0)
		}),
		f("map shared and write", func(p string, _ *world) error {
			fd, err := unix.Open(p, unix.O_RDWR, 0)
			if err != nil {
				return err
			}
			b, err := unix.Mmap(fd, 0, 4, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
			if err == nil {
				b[0] = 'X'
			}
			return err
		}),
		f("O_TMPFILE", func(p string, _ *world) error {
			_, err := unix.Open(filepath.Dir(p), unix.O_TMPFILE|unix.O_WRONLY, 0o644)
			return err
		}),
		f("chmod", func(p string, _ *world) error { return os.Chmod(p, 0o777) }),
		f("chmod by descriptor", func(p string, _ *world) error {
			fd, err := unix.Open(p, unix.O_RDONLY, 0)
			if err != nil {
				return err
			}
			return unix.Fchmod(fd, 0o777)
		}),
		f("set the times", func(p string, _ *world) error { return unix.Utimes(p, []unix.Timeval{{Sec: 1}, {Sec: 1}}) }),
		{name: "readable: set an attribute", needs: "user attributes", do: func(w *world) error {
			return unix.Setxattr(w.ro("file"), "user.planted", []byte("x"), 0)
		}},
		{name: "readable: set the inode's flags", needs: "a file system with inode flags", do: func(w *world) error {
			fd, err := unix.Open(w.ro("file"), unix.O_RDONLY, 0)
			if err != nil {
				return err
			}
			flags := 0x40 // FS_NODUMP_FL of linux/fs.h: the owner's to set
			_, err = call(unix.SYS_IOCTL, uintptr(fd), 0x40086602, uintptr(unsafe.Pointer(&flags)), 0, 0, 0)
			return err
		}},
	}
}
