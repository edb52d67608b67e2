//go:build linux

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sandboxd/internal/testenv"
)

// Stage 2 is the small program that a binary carries, from memory; this binary itself where
// it carries none, and where the host does not let it be executed: by a sysctl of its pid
// namespace (vm.memfd_noexec), or by an LSM, which shows at the first jail only.
func TestStage2FromMemory(t *testing.T) {
	const small = "/memfd:stage2 (deleted)"
	testenv.EachUser(t, func(t *testing.T, u testenv.User) {
		dir := testenv.TempDir(t, u)
		carrying, plain := carrying(t), filepath.Join(dir, "plain")
		if err := testenv.Build(plain, "sandboxd/cmd/sandboxd"); err != nil {
			t.Fatal(err)
		}
		m := jailed(t, u)
		refuse := m.fake(`case $(readlink /proc/$$/fd/8) in *memfd*) echo "bwrap: execvp /proc/self/fd/8: Permission denied" >&2; exit 1;; esac; exec /usr/bin/bwrap "$@"`)
		kill := m.fake(`case $(readlink /proc/$$/fd/8) in *memfd*) kill -KILL $$;; esac; exec /usr/bin/bwrap "$@" `)
		for _, tc := range []struct {
			name, binary string
			want         string
			by           []string // what starts it
			args         []string
		}{
			{"carried", carrying, small, nil, nil},
			{"not carried", plain, plain, nil, nil},
			{"memory is not executed", carrying, carrying, []string{"unshare", "--pid", "--fork", "--mount-proc", "sh", "-c",
				`[ -e /proc/sys/vm/memfd_noexec ] || echo no sysctl >&2; echo 2 >/proc/sys/vm/memfd_noexec && exec "$@"`, "sh"}, nil},
			{"it is refused", carrying, carrying, nil, []string{"--bwrap", refuse}},
			{"it is killed", carrying, carrying, nil, []string{"--bwrap", kill}},
		} {
			t.Run(tc.name, func(t *testing.T) {
				if tc.by != nil && u.UID != 0 {
					testenv.Skip(t, "root", "a sysctl is written")
				}
				m := m
				m.t = t
				argv := append(append(tc.by, tc.binary, "--standby=on"), tc.args...)
				c := m.spawnCmd(exec.Command(argv[0], argv[1:]...), m.policy())
				c.greet()
				c.start(2, m.dir, "sh", "-c", "echo ran; readlink /proc/self/exe")
				if r := c.collect(2); !strings.HasPrefix(r.stdout, "ran\n") || strings.Contains(r.stdout, "memfd") {
					t.Fatalf("%q, %+v, %+v; %s", r.stdout, r.exit, r.fail, c.stderr)
				}
				c.ready()
				if exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", c.waiting())); err != nil || exe != tc.want {
					t.Errorf("stage 2 is %q, %v, not %q", exe, err, tc.want)
				}
				c.down()
			})
		}
	})
}

// carrying gives a binary that carries the small program.
func carrying(t *testing.T) string {
	t.Helper()
	if path := os.Getenv(testenv.BinaryEnv); path != "" {
		return path
	}
	path := filepath.Join(testenv.TempDir(t, testenv.Me()), "sandboxd")
	if err := os.Chmod(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	build := exec.Command(filepath.Join(testenv.Root(t), "scripts", "build"), path)
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-buildvcs=false")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return path
}

// What was executed for a while is executed no more, as where an administrator tightens a
// running host: the next command runs all the same, and so do those behind it.
func TestStage2RefusedLater(t *testing.T) {
	testenv.EachUser(t, func(t *testing.T, u testenv.User) {
		binary := carrying(t)
		for _, args := range [][]string{{"--standby=off"}, {"--standby=on"}, nil} {
			m := jailed(t, u)
			if args == nil {
				m.name = "degraded"
			}
			cmd := m.command(args...)
			cmd.Args[slices.Index(cmd.Args, testenv.Binary(t))] = binary
			if args != nil {
				cmd.Path = binary
			}
			c := m.spawnCmd(cmd, m.policy())
			c.greet()
			run := func(id uint64) {
				t.Helper()
				c.start(id, m.dir, "sh", "-c", "echo ran >>log")
				if r := c.collect(id); r.exit == nil || r.exit.Code != 0 {
					t.Errorf("%v: command %d: %+v, %+v", args, id, r.exit, r.fail)
				}
			}
			run(2)
			run(3)
			fds, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", c.cmd.Process.Pid))
			closed := 0
			for _, fd := range fds {
				if to, _ := os.Readlink(fd); strings.HasPrefix(to, "/memfd:stage2") {
					closed++
					if err := os.Chmod(fd, 0); err != nil {
						t.Fatal(err)
					}
				}
			}
			if err != nil || closed != 1 {
				t.Fatalf("%v: %d memfds among %q, %v", args, closed, fds, err)
			}
			for id := range uint64(4) {
				run(4 + id)
			}
			if log, err := os.ReadFile(filepath.Join(m.dir, "log")); err != nil || string(log) != strings.Repeat("ran\n", 6) {
				t.Errorf("%v: %q, %v", args, log, err)
			}
			c.down()
		}
	})
}
