//go:build linux

package attack

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// everyPID tries a path below the /proc directory of every process that is visible.
func (w *world) everyPID(try func(dir string) error) error {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return err
	}
	err = errMissed
	for _, e := range entries {
		if e.Name()[0] < '0' || e.Name()[0] > '9' {
			continue
		}
		if err = try("/proc/" + e.Name()); err == nil {
			return nil
		}
	}
	return err
}

// outsideAttacks are after what no part of the policy names.
func outsideAttacks() []attack {
	secret := func(w *world) string { return w.out("secret") }
	return []attack{
		{name: "outside: read", do: reading(secret)},
		{name: "outside: read through dots", do: reading(func(w *world) string {
			return w.ws("deep/../../../out/" + filepath.Base(w.dir("out")) + "/secret")
		})},
		{name: "outside: read through a planted link", do: func(w *world) error {
			if err := os.Symlink(w.out("secret"), w.ws("link")); err != nil {
				return err
			}
			return w.reads(w.ws("link"))
		}},
		{name: "outside: read through a linked directory", do: func(w *world) error {
			if err := os.Symlink(w.dir("out"), w.ws("linkdir")); err != nil {
				return err
			}
			return w.reads(w.ws("linkdir/secret"))
		}},
		{name: "outside: second name in the workspace", do: func(w *world) error {
			if err := os.Link(w.out("secret"), w.ws("second")); err != nil {
				return err
			}
			return w.reads(w.ws("second"))
		}},
		{name: "outside: move into the workspace", do: func(w *world) error {
			if err := os.Rename(w.out("secret"), w.ws("stolen")); err != nil {
				return err
			}
			return w.reads(w.ws("stolen"))
		}},
		{name: "outside: read through /proc/PID/root", do: func(w *world) error {
			return w.everyPID(func(dir string) error { return w.reads(dir + "/root" + w.out("secret")) })
		}},
		{name: "outside: read through /proc/PID/cwd", do: func(w *world) error {
			return w.everyPID(func(dir string) error { return w.reads(dir + "/cwd/victim-secret") })
		}},
		{name: "outside: read through /proc/PID/fd", do: func(w *world) error {
			return w.everyPID(func(dir string) error {
				return until(names(dir+"/fd"), func(n string) error {
					if to, err := os.Readlink(dir + "/fd/" + n); err != nil || !strings.HasSuffix(to, "victim-secret") {
						return errMissed
					}
					return w.reads(dir + "/fd/" + n)
				})
			})
		}},
		{name: "outside: read through /proc/PID/map_files", root: true, do: func(w *world) error {
			return w.everyPID(func(dir string) error {
				return until(names(dir+"/map_files"), func(n string) error {
					if to, err := os.Readlink(dir + "/map_files/" + n); err != nil || !strings.HasSuffix(to, "victim-secret") {
						return errMissed
					}
					return w.reads(dir + "/map_files/" + n)
				})
			})
		}},
		{name: "outside: read by a handle", root: true, do: func(w *world) error { return w.byHandle("", "out") }},
		{name: "outside: chroot and climb", root: true, do: func(w *world) error {
			dir, err := unix.Open(".", unix.O_RDONLY, 0)
			return steps(func() error { return err }, func() error { return unix.Chroot(w.dir("ws")) }, func() error { return unix.Fchdir(dir) },
				func() error { return os.Chdir(strings.Repeat("../", 40)) }, func() error { return w.reads("." + w.out("secret")) })
		}},
		{name: "outside: climb from an inherited directory", setup: func(w *world) error {
			fd, err := unix.Open(w.dir("out"), unix.O_RDONLY|unix.O_DIRECTORY, 0)
			if err != nil {
				return err
			}
			return unix.Dup3(fd, 70, 0)
		}, do: func(w *world) error {
			return until(numbers(3, 256), func(fd int) error {
				got, err := unix.Openat(fd, "secret", unix.O_RDONLY, 0)
				if err != nil {
					return err
				}
				return w.reads(fmt.Sprintf("/proc/self/fd/%d", got))
			})
		}},
		{name: "outside: list the directory", do: func(w *world) error { _, err := os.ReadDir(w.dir("out")); return err }},
		{name: "outside: change into it", do: func(w *world) error { return os.Chdir(w.dir("out")) }},
		{name: "outside: stat", do: func(w *world) error { _, err := os.Stat(w.out("secret")); return err }},
		{name: "outside: O_PATH", do: func(w *world) error { _, err := unix.Open(w.out("secret"), unix.O_PATH, 0); return err }},
		{name: "outside: watch by inotify", do: func(w *world) error {
			fd, err := unix.InotifyInit1(0)
			if err != nil {
				return err
			}
			_, err = unix.InotifyAddWatch(fd, w.dir("out"), unix.IN_ALL_EVENTS)
			return err
		}},
		{name: "outside: execute a program", do: func(w *world) error { return exec.Command(w.out("program")).Run() }},
		{name: "outside: create", do: rewritten(func(w *world) string { return w.out("new") }, os.O_CREATE), after: exists("new")},
		{name: "outside: overwrite", do: rewritten(secret, 0), after: changed(secret)},
		{name: "outside: unlink", do: func(w *world) error { return os.Remove(w.out("secret")) }, after: changed(secret)},
		{name: "outside: mkdir", do: func(w *world) error { return os.Mkdir(w.out("newdir"), 0o755) }, after: exists("newdir")},
		{name: "outside: move there", do: func(w *world) error { return os.Rename(w.ws("own"), w.out("moved")) }, after: exists("moved")},
		{name: "outside: write through a planted link", do: func(w *world) error {
			if err := os.Symlink(w.out("new"), w.ws("link")); err != nil {
				return err
			}
			return put(w.ws("link"), os.O_CREATE)
		}, after: exists("new")},
		{name: "outside: make its path anew", do: func(w *world) error {
			return steps(func() error { return os.RemoveAll(w.dir("out")) }, func() error { return os.MkdirAll(w.dir("out"), 0o755) },
				func() error { return put(w.out("new"), os.O_CREATE) })
		}, after: exists("new")},
		{name: "outside: a directory in the root", root: true, do: func(w *world) error {
			defer os.Remove("/sandboxd-attack-" + w.Nonce)
			return os.Mkdir("/sandboxd-attack-"+w.Nonce, 0o755)
		}, needs: unlessReadOnly("/")},
		{name: "outside: a file in /usr", root: true, do: rewriteSystem("/usr/sandboxd-attack-"), needs: unlessReadOnly("/usr")},
		{name: "outside: a file in /etc", root: true, do: rewriteSystem("/etc/sandboxd-attack-"), needs: unlessReadOnly("/etc")},
	}
}

// unlessReadOnly is what an attack needs where the host itself cannot write: a machine of
// the kernel matrix has the host's file system read-only.
func unlessReadOnly(dir string) string {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err == nil && fs.Flags&unix.ST_RDONLY != 0 {
		return dir + " mounted writable"
	}
	return ""
}

func rewriteSystem(prefix string) func(*world) error {
	return func(w *world) error {
		defer os.Remove(prefix + w.Nonce)
		return put(prefix+w.Nonce, os.O_CREATE)
	}
}

func exists(rel string) func(*world) error {
	return func(w *world) error { _, err := os.Lstat(w.out(rel)); return err }
}

func names(dir string) []string {
	entries, _ := os.ReadDir(dir)
	var list []string
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

func numbers(from, to int) []int {
	var list []int
	for n := from; n < to; n++ {
		list = append(list, n)
	}
	return list
}
