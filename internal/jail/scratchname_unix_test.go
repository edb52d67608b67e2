//go:build linux || darwin

package jail

import (
	"os"
	"path/filepath"
	"testing"
)

// A command can plant names beside the scratches: none of them stands for another's.
func TestScratchNames(t *testing.T) {
	for _, tc := range []struct{ witness, scratch string }{
		{"sandboxd-scratch-1234.witness", "sandboxd-scratch-1234"},
		{"sandboxd-scratch-*.witness", ""},
		{"sandboxd-scratch-[0-9]*.witness", ""},
		{"sandboxd-scratch-?.witness", ""},
		{"sandboxd-scratch-.witness", ""},
		{"sandboxd-scratch-12-34.witness", ""},
		{"sandboxd-scratch-12a.witness", ""},
		{"sandboxd-scratch-1/../2.witness", ""},
		{"sandboxd-scratch-1234", ""},
		{"x-sandboxd-scratch-1234.witness", ""},
		{"1234.witness", ""},
	} {
		if got, ok := scratchOf(tc.witness); ok != (tc.scratch != "") || ok && got != tc.scratch {
			t.Errorf("%q is for %q, %t; want %q", tc.witness, got, ok, tc.scratch)
		}
	}
	const scratch = "sandboxd-scratch-12"
	for name, want := range map[string]bool{
		"sandboxd-scratch-12-7.sb":     true,
		"sandboxd-scratch-12-99.spec":  true,
		"sandboxd-scratch-123-7.sb":    false, // another's
		"sandboxd-scratch-13-7.sb":     false,
		"sandboxd-scratch-12":          false,
		"sandboxd-scratch-12.witness":  false,
		"sandboxd-scratch-12-.sb":      false,
		"sandboxd-scratch-12-x.sb":     false,
		"sandboxd-scratch-12-7":        false,
		"sandboxd-scratch-12-7.sb.bak": false,
		"sandboxd-scratch-*-7.sb":      false,
	} {
		if liesBeside(name, scratch) != want {
			t.Errorf("%q lies beside %q: %t, want %t", name, scratch, !want, want)
		}
	}
}

// What os.CreateTemp makes of the patterns is known again.
func TestScratchNamesAreThoseMade(t *testing.T) {
	dir := t.TempDir()
	made := func(pattern string) string {
		f, err := os.CreateTemp(dir, pattern)
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
		return filepath.Base(f.Name())
	}
	for range 50 {
		witness := made(scratchPrefix + "*" + witnessSuffix)
		scratch, ok := scratchOf(witness)
		if !ok {
			t.Fatalf("%q is no witness", witness)
		}
		for _, suffix := range []string{profileSuffix, specSuffix} {
			if name := made(scratch + "-*" + suffix); !liesBeside(name, scratch) {
				t.Fatalf("%q does not lie beside %q", name, scratch)
			}
		}
	}
}
