package archtest

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sandboxd/internal/testenv"
)

// Programs that scripts/setup asks for by another one of the same package, or that every
// machine has on which it runs.
var comesWith = map[string]string{
	"unshare": "setpriv", "nsenter": "setpriv", "prlimit": "setpriv", "venv": "/usr/bin/python3",
	"python3": "/usr/bin/python3", "bash": "", "go": "",
}

// What a test needs of the machine scripts/setup installs: on a fresh one it is a skip
// that nothing lists, or a failure where the fence is required.
func TestSetupInstallsWhatTestsNeed(t *testing.T) {
	root := testenv.Root(t)
	b, err := os.ReadFile(filepath.Join(root, "scripts", "setup"))
	if err != nil {
		t.Fatal(err)
	}
	installs := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^\t+need \S+ has (\S+)`).FindAllStringSubmatch(string(b), -1) {
		installs[m[1]] = true
	}
	asks := regexp.MustCompile(`\b(?:testenv\.Tool|fenceTool|needTool)\([a-z.]+, "([^"]+)"\)`)
	asked := map[string]string{}
	err = filepath.WalkDir(filepath.Join(root, "internal"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range asks.FindAllStringSubmatch(string(text), -1) {
			asked[m[1]] = path
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"cargo", "gcc", "npm", "unshare"} {
		if asked[name] == "" {
			t.Errorf("no test asks for %s any more: is it still asked for in this way?", name)
		}
	}
	for name, path := range asked {
		by, other := comesWith[name]
		if !other {
			by = name
		}
		if by != "" && !installs[by] {
			t.Errorf("%s needs %s, and scripts/setup does not ask for it", path, name)
		}
	}
}
