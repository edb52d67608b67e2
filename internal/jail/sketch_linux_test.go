package jail

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"sandboxd/internal/host"
	"sandboxd/internal/testenv"
	"sandboxd/protocol"
)

// A job takes the last one's sketch over where it asks for the same on the same host, and
// is then the job that it would have become by itself.
func TestSketch(t *testing.T) {
	ws := filepath.Join(testenv.OutsideTmp(t), "ws")
	if err := os.MkdirAll(filepath.Join(ws, "kept"), 0o755); err != nil {
		t.Fatal(err)
	}
	mounts, err := openMountTable()
	if err != nil {
		t.Fatal(err)
	}
	h := &Host{mounts: mounts, Facts: host.Facts{UID: os.Getuid(), LandlockABI: 1}}
	h.Facts.Bwrap.State = host.Works
	req := Request{Argv: []string{"true"}, Env: map[string]string{"PATH": "/usr/bin"}, Cwd: ws,
		Policy: protocol.Policy{WritableRoots: []string{ws}, ReadableRoots: []string{ws + "/kept"}, Network: protocol.Network{Mode: protocol.NetOff},
			Scratch: protocol.ScratchTmpfs, EnvAllow: []string{"PATH"}}}
	prepared := func(req Request) *job {
		t.Helper()
		j, err := h.prepare(req, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = j.release() })
		return j
	}
	time.Sleep(50 * time.Millisecond) // what changed just now is not vouched for
	prepared(req)                     // it teaches the memory
	var first, again *job
	for range 100 { // other tests mount
		first = prepared(req)
		again = prepared(Request{Policy: req.Policy, Argv: []string{"other", "arg"}, Env: req.Env, Cwd: req.Cwd})
		if again.mounts == first.mounts {
			break
		}
	}
	if first.sketch == nil || again.sketch != first.sketch {
		t.Fatalf("the sketch was not taken over: %p, %p", first.sketch, again.sketch)
	}
	if string(again.recipe()) != string(first.recipe()) || again.spec.Argv[0] != "other" || first.spec.Argv[0] != "true" {
		t.Errorf("they differ: %v, %v", first.spec, again.spec)
	}
	wider := req.Policy
	wider.ReadableRoots = nil
	for name, other := range map[string]Request{
		"policy":      {Policy: wider, Argv: req.Argv, Env: req.Env, Cwd: req.Cwd},
		"environment": {Policy: req.Policy, Argv: req.Argv, Env: map[string]string{"PATH": "/bin"}, Cwd: req.Cwd},
		"directory":   {Policy: req.Policy, Argv: req.Argv, Env: req.Env, Cwd: "/"},
	} {
		if prepared(req).sketch == prepared(other).sketch {
			t.Errorf("%s: another request has the same sketch", name)
		}
	}
	last := prepared(req)
	if err := os.Rename(ws+"/kept", ws+"/gone"); err != nil {
		t.Fatal(err)
	}
	if prepared(req).sketch == last.sketch {
		t.Error("another host has the same sketch")
	}
}
