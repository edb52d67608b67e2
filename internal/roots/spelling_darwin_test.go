package roots

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sandboxd/internal/testenv"
)

// What a survey resolves a path to is what the kernel calls it: with the letter case of
// the disk, and without the prefix of the data volume.
func TestKernelsOwnSpelling(t *testing.T) {
	base, err := os.MkdirTemp("/private/tmp", "sandboxd-Spelling-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	if err := os.MkdirAll(base+"/Dir/Inner", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(base+"/Dir/File", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	ask := map[string]string{
		base + "/Dir/File":              base + "/Dir/File",
		base + "/Dir/Missing":           base + "/Dir/Missing",
		"/System/Volumes/Data" + base:   base,
		"/System/Volumes/Data/Users":    "/Users",
		"/System/Volumes/Data/Library/": "/Library",
	}
	if _, err := os.Lstat(base + "/dir"); err == nil {
		ask[base+"/dir/FILE"], ask[base+"/DIR/inner/x"] = base+"/Dir/File", base+"/Dir/Inner/x"
		ask[strings.ToLower(base)+"/dir"] = base + "/Dir"
	} else {
		testenv.Skip(t, "case-insensitive", "the volume of /private/tmp tells letter case")
	}
	var paths []string
	for path := range ask {
		paths = append(paths, path)
	}
	// A writable place: another spelling there is no link that a command has planted.
	r, err := Survey(paths, Writability{Paths: []string{base}})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for path, want := range ask {
		if res := r.Layout().Resolve(path); res.Err != nil || res.Path != want || len(res.Links) != 0 {
			t.Errorf("%s: %+v, want %s", path, res, want)
		}
	}
	if got, err := KernelPath(filepath.Join("/tmp", filepath.Base(base), "dir", "file")); err != nil || got != base+"/Dir/File" {
		t.Errorf("KernelPath: %q, %v", got, err)
	}
}
