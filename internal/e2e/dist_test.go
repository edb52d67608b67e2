//go:build linux

package e2e

import (
	"bytes"
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"sandboxd/internal/testenv"
)

// TestDistIsReproducible builds a release twice: in other directories, under another
// umask, time zone, language and Go settings, and the second time from an empty cache.
// SANDBOXD_DIST=all (`make dist-check`) builds for every system, which takes minutes.
func TestDistIsReproducible(t *testing.T) {
	for _, tool := range []string{"go", "dpkg-deb", "bash"} {
		testenv.Tool(t, tool)
	}
	// One copy for both: the tree may be worked on meanwhile.
	source := filepath.Join(t.TempDir(), "source")
	take(t, testenv.Root(t), source)
	targets, want := "linux/"+runtime.GOARCH, []string{"SHA256SUMS", runtime.GOARCH + ".deb", "linux_" + runtime.GOARCH}
	if os.Getenv("SANDBOXD_DIST") == "all" {
		targets, want = "", []string{"SHA256SUMS", "amd64.deb", "arm64.deb", "darwin_amd64", "darwin_arm64", "linux_amd64", "linux_arm64"}
	}
	first, second := filepath.Join(t.TempDir(), "a"), filepath.Join(t.TempDir(), "elsewhere", "b")
	dist(t, source, first, "umask 022", "TZ=UTC", "DIST_TARGETS="+targets)
	dist(t, source, second, "umask 077", "TZ=Asia/Tokyo", "LC_ALL=C.UTF-8", "GOFLAGS=-buildvcs=true", "GOAMD64=v2",
		"GOCACHE="+t.TempDir(), "DIST_TARGETS="+targets)
	names := list(t, first)
	for i, n := range names {
		if _, rest, ok := strings.Cut(n, "_"); ok {
			_, names[i], _ = strings.Cut(rest, "_")
		}
	}
	if !slices.Equal(names, want) {
		t.Fatalf("made %q, expected %q", names, want)
	}
	same(t, first, second)

	check := exec.Command("sha256sum", "--check", "--quiet", "SHA256SUMS")
	check.Dir = first
	if out, err := check.CombinedOutput(); err != nil {
		t.Errorf("checksums: %v\n%s", err, out)
	}
	inspect(t, first)
}

// take copies what a released archive has.
func take(t *testing.T, from, to string) {
	t.Helper()
	script := `mkdir -p "$1"; cp -r "$0"/{cmd,internal,protocol,scripts,go.mod,go.sum,*.md,LICENSE} "$1"`
	if text, err := exec.Command("bash", "-ec", script, from, to).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
}

// dist runs scripts/dist in a copy of the tree that is made under that umask.
func dist(t *testing.T, source, out, umask string, env ...string) {
	t.Helper()
	cmd := exec.Command("bash", "-ec", umask+`; mkdir -p "$1"; cp -r "$0" "$1/tree"; cd "$1/tree"; exec scripts/dist "$2"`, source, filepath.Dir(out), out)
	cmd.Env = append(append(os.Environ(), "SOURCE_DATE_EPOCH=1700000000"), env...)
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("scripts/dist: %v\n%s", err, text)
	}
}

func list(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// same compares all of a with the files of those names in b.
func same(t *testing.T, a, b string) {
	t.Helper()
	for _, name := range list(t, a) {
		one, err := os.ReadFile(filepath.Join(a, name))
		other, err2 := os.ReadFile(filepath.Join(b, name))
		if err != nil || err2 != nil || len(one) == 0 {
			t.Fatalf("%s: %v, %v, %d bytes", name, err, err2, len(one))
		}
		if !bytes.Equal(one, other) {
			t.Errorf("%s differs between two builds", name)
		}
	}
}

// inspect looks at this machine's binary and package as an administrator would.
func inspect(t *testing.T, dir string) {
	t.Helper()
	deb := one(t, filepath.Join(dir, "sandboxd_*_"+runtime.GOARCH+".deb"))
	tree := t.TempDir()
	if out, err := exec.Command("dpkg-deb", "--extract", deb, tree).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	binary := filepath.Join(tree, "usr/bin/sandboxd")
	f, err := elf.Open(binary)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			t.Error("the binary needs a loader: it is not static")
		}
	}
	version := asked(t, "dpkg-deb", "--field", deb, "Version")
	if got := asked(t, binary, "--version"); !strings.HasPrefix(got, "sandboxd "+version+"\n") || version == "" {
		t.Errorf("the package has version %q, and its binary says %q", version, got)
	}
	if got := asked(t, "dpkg-deb", "--field", deb, "Depends"); !strings.Contains(got, "bubblewrap") {
		t.Errorf("the package depends on %q", got)
	}
	for _, line := range strings.Split(asked(t, "dpkg-deb", "--contents", deb), "\n") {
		if !strings.Contains(line, "root/root") || line[5] == 'w' || line[8] == 'w' {
			t.Errorf("the package holds %s", line)
		}
	}
	for _, name := range []string{"man/man1/sandboxd.1.gz", "bash-completion/completions/sandboxd", "zsh/vendor-completions/_sandboxd", "fish/vendor_completions.d/sandboxd.fish", "doc/sandboxd/copyright"} {
		if s, err := os.Stat(filepath.Join(tree, "usr/share", name)); err != nil || s.Size() < 100 {
			t.Errorf("the package's %s: %v", name, err)
		}
	}
	b, err := os.ReadFile(binary)
	if root := testenv.Root(t); err != nil || bytes.Contains(b, []byte(root+"/internal")) {
		t.Errorf("the binary names the directory %s it was built in, %v", root, err)
	}
}

func one(t *testing.T, pattern string) string {
	t.Helper()
	found, err := filepath.Glob(pattern)
	if err != nil || len(found) != 1 {
		t.Fatalf("%s matched %q, %v", pattern, found, err)
	}
	return found[0]
}
