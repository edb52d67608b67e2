package stage2

import (
	"os"
	"os/exec"
	"testing"

	"sandboxd/internal/testenv"
)

// Under a hard limit of 0 for core files a crash starts the host's handler. Where there is
// one the report says so, and nowhere else. The host's setting is shown by a mount of the
// test's own, and not changed: the kernel would start it for everybody.
func TestCoreLimitOfZero(t *testing.T) {
	if os.Getuid() != 0 {
		testenv.Skip(t, "root", "only root mounts")
	}
	unshare := testenv.Tool(t, "unshare")
	if out, err := exec.Command(unshare, "-m", "true").CombinedOutput(); err != nil {
		testenv.Skip(t, "mount", string(out))
	}
	for _, test := range []struct {
		hard, pattern string
		said          bool
	}{
		{"0", "|/bin/false %P", true},
		{"0", "@/run/crash.socket", true},
		{"0", "core.%p", false},
		{"0", "", false},
		{"unlimited", "@/run/crash.socket", true},
		{"1", "@@/run/crash.socket", true},
		{"unlimited", "core.%p", false},
		{"unlimited", "|/bin/false %P", false},
		{"1", "|/bin/false %P", false}, // 512 or 1,024 bytes
	} {
		t.Run(test.hard+" "+test.pattern, func(t *testing.T) {
			w := newWorld(t, testenv.Me(), false)
			pattern := w.file(t, "pattern", test.pattern, 0o644)
			w.limits = `set -- ` + unshare + ` -m sh -c 'mount --bind ` + pattern + ` ` + corePattern + ` && ulimit -Hc ` + test.hard + ` && exec "$@"' sh "$@"`
			r := w.run(t, w.spec("grep", "core", "/proc/self/limits").Append(nil))
			skips := r.report(t).Skips
			said := len(skips) == 1 && skips[0].Tag == "platform-restrictions"
			if said != test.said || !said && len(skips) > 0 {
				t.Errorf("skips %+v; limits %q", skips, r.out)
			}
		})
	}
}
