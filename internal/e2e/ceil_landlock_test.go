//go:build linux

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sandboxd/internal/landlock"
	"sandboxd/internal/testenv"
	"sandboxd/protocol"
)

// abiRights is what a ruleset of each ABI must handle (the kernel's
// Documentation/userspace-api/landlock.rst), for a policy without network.
var abiRights = []struct{ fs, net, scope uint64 }{
	1: {fs: 0x1fff}, 2: {fs: 0x3fff}, 3: {fs: 0x7fff},
	4: {0x7fff, 3, 0}, 5: {0xffff, 3, 0},
	6: {0xffff, 3, 3}, 7: {0xffff, 3, 3}, 8: {0xffff, 3, 3},
	9: {0x1ffff, 3, 3}, 10: {0x1ffff, 15, 3}, 11: {0x1ffff, 15, 3},
}

// since is the ABI that brought what each entry reports.
var since = map[string]int{protocol.TagLandlock: 1, protocol.TagLandlockNet: 4, protocol.TagLandlockScope: 6, protocol.TagLandlockUnix: 9}

// The kernel's answer to the question for its ABI is replaced by each that there is: the
// rights that are asked for are exactly that ABI's, and the report names it and what it
// lacks. Above this kernel's own ABI the kernel refuses the rights, and so no command
// starts.
func TestCeilLandlockABIs(t *testing.T) {
	strace := testenv.Tool(t, "strace")
	own, err := landlock.ABI()
	if err != nil {
		testenv.Skip(t, "landlock", err.Error())
	}
	u := testenv.Me()
	u.Home = testenv.TempDir(t, u)
	for abi := 1; abi <= landlock.MaxABI+1; abi++ {
		t.Run(fmt.Sprint(abi), func(t *testing.T) {
			m := jailed(t, u)
			trace := filepath.Join(u.Home, fmt.Sprintf("trace-%d", abi))
			call := "landlock_create_ruleset"
			cmd := exec.Command(strace, "-f", "-qq", "-X", "raw", "-e", "signal=none", "-o", trace,
				"-e", "trace="+call, "-e", fmt.Sprintf("inject=%s:retval=%d:when=1", call, abi), testenv.Binary(t))
			c := m.spawnCmd(cmd, m.policy())
			c.greet()
			if !has(c.hello.Features, "landlock") {
				t.Errorf("hello: %q", c.hello.Features)
			}
			c.start(2, m.dir, "sh", "-c", "echo ran >witness")
			r := c.collect(2)
			c.down()
			_, err := os.Stat(filepath.Join(m.dir, "witness"))
			used := min(abi, landlock.MaxABI) // what is newer is used as the newest that is known
			if same := abiRights[used] == abiRights[min(own, landlock.MaxABI)]; used > own && !same {
				if err == nil || r.fail == nil || r.fail.Code != protocol.CodeSpawnFailed || !strings.Contains(r.fail.Msg, "Landlock ruleset of ABI") {
					t.Errorf("got %+v, %+v, the file: %v", r.exit, r.fail, err)
				}
				return
			}
			if r.exit == nil || err != nil {
				t.Fatalf("got %+v, the file: %v", r.fail, err)
			}
			wantRights(t, trace, used)
			for tag, from := range since {
				entry := tag
				if tag == protocol.TagLandlock {
					entry += fmt.Sprintf(":abi=%d", used)
				}
				if got := slices.Contains(r.exit.Enforcement, entry); got != (used >= from) {
					t.Errorf("%s is reported: %v: %q", entry, got, r.exit.Enforcement)
				}
			}
			for _, tag := range []string{protocol.TagLandlockNet, protocol.TagLandlockScope} {
				if got := has(r.exit.Enforcement, "skip:"+tag); got != (used < since[tag]) {
					t.Errorf("%s is skipped: %v: %q", tag, got, r.exit.Enforcement)
				}
			}
		})
	}
}

// wantRights looks at the ruleset that was made: the one call with an attribute.
func wantRights(t *testing.T, trace string, abi int) {
	t.Helper()
	b, err := os.ReadFile(trace)
	must(t, err)
	made := regexp.MustCompile(`handled_access_fs=(0x[0-9a-f]+)(?:, handled_access_net=(0x[0-9a-f]+))?(?:, scoped=(0x[0-9a-f]+))?`).FindAllStringSubmatch(string(b), -1)
	if len(made) != 1 {
		t.Fatalf("%d rulesets in\n%s", len(made), b)
	}
	want := abiRights[abi]
	for i, v := range []uint64{want.fs, want.net, want.scope} {
		if got := made[0][1+i]; got != "" && got != fmt.Sprintf("%#x", v) { // an old strace does not show all
			t.Errorf("right %d of the ruleset is %s, want %#x", i, got, v)
		}
	}
}
