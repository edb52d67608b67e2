package testenv

import (
	"os"
	"os/exec"
	"testing"
)

func TestLeaksShow(t *testing.T) {
	before := FDs(os.Getpid())
	f, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	fd := int(f.Fd())
	if _, ok := before[fd]; ok || FDs(os.Getpid())[fd] != os.DevNull {
		t.Errorf("descriptor %d does not show", fd)
	}
	f.Close()

	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	child := func() bool {
		for _, p := range Descendants(os.Getpid()) {
			if p.PID == cmd.Process.Pid {
				return true
			}
		}
		return false
	}
	if !child() {
		t.Error("a child does not show")
	}
	cmd.Process.Kill()
	cmd.Wait()
	if child() {
		t.Error("a child that was waited for still shows")
	}
}

func TestNothingLeftPasses(t *testing.T) {
	NoNewFDs(t)
	NoNewChildren(t)
	if err := exec.Command("true").Run(); err != nil {
		t.Fatal(err)
	}
}
