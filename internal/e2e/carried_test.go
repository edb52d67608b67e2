//go:build linux

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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
		carrying, plain := os.Getenv(testenv.BinaryEnv), filepath.Join(dir, "plain")
		if carrying == "" {
			carrying = filepath.Join(dir, "carrying")
			build := exec.Command(filepath.Join(testenv.Root(t), "scripts", "build"), carrying)
			build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-buildvcs=false")
			if out, err := build.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
		}
		if err := testenv.Build(plain, "sandboxd/cmd/sandboxd"); err != nil {
			t.Fatal(err)
		}
		m := jailed(t, u)
		refuse := m.fake(`case $(readlink /proc/$$/fd/8) in *memfd*) echo "bwrap: execvp /proc/self/fd/8: Permission denied" >&2; exit 1;; esac; exec /usr/bin/bwrap "$@"`)
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
