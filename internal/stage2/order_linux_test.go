package stage2

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sandboxd/internal/landlock"
	"sandboxd/internal/testenv"
)

// TestOrderOfSystemCalls reads the order off the kernel's side: each of these calls
// stage 2 makes first after the one before. Only arguments are looked for: results can
// stand on a later line.
func TestOrderOfSystemCalls(t *testing.T) {
	if _, err := exec.LookPath("strace"); err != nil {
		testenv.Skip(t, "tool:strace", err.Error())
	}
	if abi, err := landlock.ABI(); abi < 1 {
		testenv.Skip(t, "landlock", err.Error())
	}
	w := newWorld(t, testenv.Me(), false)
	trace := filepath.Join(w.dir, "trace")
	w.limits = "set -- strace -f -o " + trace + ` "$@"`
	s := w.spec("true")
	s.FsizeBytes = 1 << 20
	s.Checks = append(s.Checks, checkRoot(w))
	w.run(t, s.Append(nil)).report(t)
	b, err := os.ReadFile(trace)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(b), "\n")
	at := -1
	for _, call := range []string{
		`sendto(4, "\201\245begun`, `chdir("/"`, `"/nonexistent/true"`, `"` + w.dir + `",`, "landlock_add_rule(", "RLIMIT_FSIZE, {",
		"RLIMIT_CORE, {", "PR_SET_NO_NEW_PRIVS", "landlock_restrict_self(", "dup3(5, 0", "close_range(3",
		"seccomp(SECCOMP_SET_MODE_FILTER", `sendto(4, "\201\246report`, "read(4", `execve("/usr/bin/true"`,
	} {
		first := indexOf(lines, call)
		if first <= at {
			t.Fatalf("%s is at line %d, the call before at %d, of\n%s", call, first, at, b)
		}
		at = first
	}
}

func indexOf(lines []string, part string) int {
	for i, line := range lines {
		if strings.Contains(line, part) {
			return i
		}
	}
	return -1
}
