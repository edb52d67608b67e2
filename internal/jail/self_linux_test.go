package jail

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// What is unpacked is executed, by nobody changed, and what it was made from stays readable.
func TestUnpack(t *testing.T) {
	script := "#!/bin/sh\necho ran\n" + strings.Repeat("# a line of many pages\n", 10000)
	f, err := unpack(script)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	cmd := exec.Command("/proc/self/fd/3")
	cmd.ExtraFiles = []*os.File{f}
	if out, err := cmd.CombinedOutput(); err != nil || string(out) != "ran\n" {
		t.Errorf("%q, %v", out, err)
	}
	if _, err := f.WriteAt([]byte("x"), 0); !errors.Is(err, unix.EPERM) {
		t.Errorf("it can be written: %v", err)
	}
	if b, err := io.ReadAll(io.NewSectionReader(f, 0, 1<<20)); err != nil || string(b) != script {
		t.Errorf("%d bytes of %d, %v", len(b), len(script), err)
	}
}

// The small program is given up for a failure that names it, or before it ever began for
// an end by a signal.
func TestRefused(t *testing.T) {
	const denied = "bwrap: execvp /proc/self/fd/8: Permission denied"
	end := func(script string) *os.ProcessState {
		cmd := exec.Command("sh", "-c", script)
		_ = cmd.Run()
		return cmd.ProcessState
	}
	for _, tc := range []struct {
		name, failed, end     string
		small, works, refused bool
	}{
		{"denied", denied, "exit 1", true, false, true},
		{"denied later", denied, "exit 1", true, true, true},
		{"a shortage", "bwrap: execvp /proc/self/fd/8: Cannot allocate memory", "exit 1", true, false, false},
		{"another failure", "bwrap: Can't mount proc on /newroot/proc", "exit 1", true, false, false},
		{"another descriptor", "bwrap: Can't bind /proc/self/fd/80", "exit 1", true, false, false},
		{"killed", "ended", "kill -9 $$", true, false, true},
		{"killed below", "ended", "exit 137", true, false, true},
		{"killed later", "ended", "kill -9 $$", true, true, false},
		{"none is carried", denied, "kill -9 $$", false, false, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			carried := ""
			if tc.small {
				carried = "small"
			}
			var s self
			if err := s.open(carried); err != nil {
				t.Fatal(err)
			}
			p := &process{}
			first, small := s.image()
			if p.small = small; small != tc.small || first == nil {
				t.Fatalf("%v is executed first, %v", first, small)
			}
			s.works.Store(tc.works)
			if got := s.refused(p, end(tc.end), tc.failed); got != tc.refused {
				t.Errorf("given up: %v", got)
			}
			if _, small := s.image(); small == (tc.refused || !tc.small) {
				t.Errorf("the small one next: %v", small)
			}
		})
	}
}
