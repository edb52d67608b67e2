package jail

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sandboxd/internal/host"
	"sandboxd/internal/host/probe"
	"sandboxd/internal/report"
	"sandboxd/internal/roots"
	"sandboxd/internal/seatbelt"
	"sandboxd/protocol"
)

// Host is the machine and the helper on it: what stays the same between
// executions.
type Host struct {
	Config
	Facts host.Facts // without a layout: each execution surveys its own

	path     string // the helper's inherited PATH
	memory   roots.Memory
	profiles host.State // whether Seatbelt profiles can be applied
	noJail   string     // why not
	userDirs []string   // the user's own temporary and cache directories, physical
}

// getconfBound is how long getconf(1) may take.
const getconfBound = 30 * time.Second

// NewHost probes the machine and removes what killed helpers left. The end of ctx
// cuts the look at Seatbelt short.
func NewHost(ctx context.Context, c Config) (*Host, error) {
	facts, err := probe.Facts(ctx, probe.Options{Bwrap: c.Bwrap})
	if err != nil {
		return nil, err
	}
	if facts.HelperPath != "" {
		// In another letter case it would seem to lie outside of a writable root.
		if facts.HelperPath, err = roots.KernelPath(facts.HelperPath); err != nil {
			return nil, fmt.Errorf("cannot tell where the helper's own program is: %w", err)
		}
	}
	h := &Host{Config: c, Facts: facts, path: os.Getenv("PATH")}
	h.profiles, h.noJail = seatbelt.Classify(probe.TrySeatbelt(ctx))
	for _, name := range []string{"DARWIN_USER_TEMP_DIR", "DARWIN_USER_CACHE_DIR"} {
		if dir := userDir(ctx, name); dir != "" {
			h.userDirs = append(h.userDirs, dir)
		}
	}
	swept := make(chan struct{})
	go func() { defer close(swept); sweepScratch() }()
	Within(KillBound, swept) // what was left may be a large tree, or hang
	return h, nil
}

// userDir asks getconf(1), which needs no cgo. Only a directory of this user counts.
func userDir(ctx context.Context, name string) string {
	ctx, cancel := context.WithTimeout(ctx, getconfBound)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/usr/bin/getconf", name)
	cmd.Env, cmd.Dir, cmd.WaitDelay = []string{}, "/", time.Second
	out, err := cmd.Output()
	if err != nil {
		return ""
	}
	dir, err := roots.KernelPath(strings.TrimSpace(string(out)))
	if err != nil || dir == "/" {
		return ""
	}
	var st unix.Stat_t
	if unix.Lstat(dir, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFDIR || int(st.Uid) != os.Getuid() {
		return ""
	}
	return dir
}

// Features is what hello tells about this host.
func (h *Host) Features() []string {
	if h.profiles == host.Works {
		return report.Features(h.Facts, protocol.TagSeatbelt)
	}
	return report.Features(h.Facts)
}

// Unenforced says why nothing at all could be enforced here, or "".
func (h *Host) Unenforced() string {
	if h.profiles != host.Absent {
		return ""
	}
	return "this host has no Seatbelt: " + h.noJail
}
