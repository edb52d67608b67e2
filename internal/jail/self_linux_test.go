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

// The small program is given up once, for a failure that names it, before it ever began.
func TestDistrust(t *testing.T) {
	const denied = "bwrap: execvp /proc/self/fd/8: Permission denied"
	for _, tc := range []struct {
		name, failed   string
		carries, works bool
		want           bool
	}{
		{"denied", denied, true, false, true},
		{"another failure", "bwrap: Can't mount proc on /newroot/proc", true, false, false},
		{"it began before", denied, true, true, false},
		{"none is carried", denied, false, false, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			carried := ""
			if tc.carries {
				carried = "small"
			}
			var s self
			if err := s.open(carried); err != nil {
				t.Fatal(err)
			}
			if first := s.image(); (first == s.small) != tc.carries || first == nil {
				t.Fatalf("%v is executed first", first)
			}
			s.works.Store(tc.works)
			if got := s.distrust(tc.failed); got != tc.want {
				t.Errorf("given up: %v", got)
			}
			if (s.image() == s.whole) != (tc.want || !tc.carries) {
				t.Errorf("%v is executed next", s.image())
			}
			if s.distrust(tc.failed) {
				t.Error("given up twice")
			}
		})
	}
}
