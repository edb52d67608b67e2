package cli

import (
	"bytes"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"sandboxd/internal/policy"
	"sandboxd/internal/policy/jsonfile"
	"sandboxd/protocol"
)

func policyOf(t *testing.T, dir string, args ...string) (int, []byte, string) {
	t.Helper()
	var out, messages bytes.Buffer
	code := policyCommand(args, System{
		Stdout: &out, Stderr: &messages, Environ: []string{"HOME=" + dir, "UV_CACHE_DIR=gone"},
		Getwd: func() (string, error) { return dir, nil },
	})
	return code, out.Bytes(), messages.String()
}

// Both formats are the same valid policy, and the flags are in it.
func TestPolicyCommand(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(dir+"/w", 0o755); err != nil {
		t.Fatal(err)
	}
	for preset, mode := range map[string]protocol.NetMode{"workspace": protocol.NetOff, "fence": protocol.NetFull} {
		flags := []string{preset, "--workspace", dir + "/w", "--pids", "7", "--protect", dir + "/w/<secret>"}
		code, text, messages := policyOf(t, dir, append(flags, "--format=json")...)
		if code != 0 || !strings.Contains(messages, "UV_CACHE_DIR is not an absolute path") {
			t.Fatalf("exit %d: %s", code, messages)
		}
		fromJSON, err := jsonfile.Decode(text)
		if err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		code, packed, _ := policyOf(t, dir, append(flags, "--format", "msgpack")...)
		fromPack, err := policy.Decode(packed)
		if err != nil || code != 0 {
			t.Fatalf("exit %d: %v", code, err)
		}
		if !reflect.DeepEqual(fromJSON, fromPack) {
			t.Errorf("%s:\n%+v\n%+v", preset, fromJSON, fromPack)
		}
		if fromPack.Network.Mode != mode || fromPack.Limits.Pids != 7 || fromPack.WritableRoots[0] != dir+"/w" || !slices.Contains(fromPack.Protected, dir+"/w/<secret>") {
			t.Errorf("%s: %+v", preset, fromPack)
		}
	}
}

func TestPolicyCommandRefuses(t *testing.T) {
	for want, args := range map[string][]string{
		"which policy":     {},
		"no preset":        {"strict"},
		"json or msgpack":  {"fence", "--format", "toml"},
		"unknown argument": {"fence", "x"},
		"two presets":      {"fence", "--preset", "fence"},
		"unknown flag":     {"fence", "--nothing"},
		"policy takes no":  {"fence", "--report"},
	} {
		if code, out, messages := policyOf(t, t.TempDir(), args...); code != exitUsage || len(out) != 0 || !strings.Contains(messages, want) {
			t.Errorf("%q: exit %d, %q, want %q", args, code, messages, want)
		}
	}
}
