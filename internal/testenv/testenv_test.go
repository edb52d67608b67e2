package testenv

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

func TestAllowedSkips(t *testing.T) {
	path := filepath.Join(t.TempDir(), "skips.txt")
	text := "# comment\nci root,user why\nci landlock the kernel has none # more\nci narrow? some have none\nother - skips nothing\n"
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	got, err := AllowedSkips(path, "ci")
	if err != nil || !slices.Equal(got, []string{"root,user", "landlock", "narrow"}) {
		t.Errorf("got %v, %v", got, err)
	}
	if got, err := AllowedSkips(path, "other"); err != nil || len(got) != 0 {
		t.Errorf("a host that skips nothing: got %v, %v", got, err)
	}
	if _, err := AllowedSkips(path, "misspelt"); err == nil {
		t.Error("an unknown kind of host is accepted")
	}
}

// The committed list must be readable and know the kinds of host that CI claims.
func TestSkipList(t *testing.T) {
	for _, host := range []string{"ci-linux"} {
		if _, err := AllowedSkips(filepath.Join(Root(t), "testdata", "skips.txt"), host); err != nil {
			t.Error(err)
		}
	}
}

// fatality catches what Skip does, in a goroutine of its own since both ways end it.
type fatality struct {
	testing.TB
	skipped, fatal bool
}

func (f *fatality) Skipf(string, ...any)  { f.skipped = true }
func (f *fatality) Fatalf(string, ...any) { f.fatal = true }
func (f *fatality) Helper()               {}

func TestSkipIsFatalWhereTheFeatureIsPromised(t *testing.T) {
	t.Setenv(SkipLogEnv, filepath.Join(t.TempDir(), "log"))
	t.Setenv(HostEnv, "ci-linux")
	promised := &fatality{TB: t}
	Skip(promised, "no-such-feature", "for the test")
	if !promised.fatal {
		t.Error("a promised feature was skipped without an error")
	}
	t.Setenv(HostEnv, "")
	free := &fatality{TB: t}
	Skip(free, "no-such-feature", "for the test")
	if free.fatal || !free.skipped {
		t.Error("a host that promises nothing may skip, and did not")
	}
	for required, fatal := range map[string]bool{"1": true, "0": false} {
		t.Setenv(FenceEnv, required)
		for _, jail := range jails[runtime.GOOS] {
			f := &fatality{TB: t}
			if Skip(f, jail, "for the test"); f.fatal != fatal {
				t.Errorf("%s=%s, no %s: fatal %t", FenceEnv, required, jail, f.fatal)
			}
		}
		f := &fatality{TB: t}
		if Skip(f, "no-such-feature", "for the test"); f.fatal {
			t.Errorf("%s=%s: what is no jail is fatal", FenceEnv, required)
		}
	}
}

func TestAsUserRunsWithoutPrivileges(t *testing.T) {
	cmd := exec.Command("sh", "-c", "id -u; cd \"$HOME\" && touch x && ls")
	u := AsUser(t, cmd)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if f := strings.Fields(string(out)); len(f) != 2 || f[0] == "0" || f[1] != "x" {
		t.Errorf("as %+v: got %q, expected an ordinary uid and the file x", u, out)
	}
}

func TestMarkerAppearsWhole(t *testing.T) {
	m := NewMarker(t.TempDir(), "it's ready")
	cmd := exec.Command("sh", "-c", m.Shell("a 'quoted' word"))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if got := m.Wait(t); got != "a 'quoted' word" {
		t.Errorf("got %q", got)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}
