package selftest

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"sandboxd/protocol"
)

// erlang is the hostile module's source. It is compiled on the host.
//
//go:embed hostile.erl
var erlang string

func hostileProbes() []Probe {
	return []Probe{
		{Name: "hostile-native", Means: "a hostile native program", Layers: byJail, run: hostileNative().probe},
		{Name: "hostile-erlang", Means: "a hostile Erlang module", Layers: byJail, Slow: true, run: hostileErlang},
	}
}

// hostileNative is the pattern of every hostile payload: run without the jail and
// with everything granted, where it succeeds, and then in the jail.
func hostileNative() denial {
	return denial{
		role: "hostile",
		must: []string{"read", "append", "create", "replace", "read2", "append2", "make", "tcp", "unix", baitName}, allowed: []string{"read3", "create3"},
		shown: true, setup: hostileSetup,
		args: func(l *lane, s *site) []string {
			return []string{
				"read3=" + s.path("work/open"), "create3=" + s.path("work/made"),
				"read=" + s.path("out/file"), "append=" + s.path("out/file"), "create=" + s.path("out/new"), "replace=" + s.path("out/file"),
				"read2=" + s.path("work/.env"), "append2=" + s.path("work/.env"), "make=" + s.path("work/.tool/config"),
				"tcp=" + l.shared.tcp, "unix=" + s.path("out/socket"), "env=" + baitName,
			}
		},
		policy: hostilePolicy, granted: hostileGranted, unjailed: true,
		intact: []string{"out/file", "out/new", "work/.env", "work/.tool"},
	}
}

func hostileSetup(l *lane, s *site) error {
	if err := s.file("work/.env", s.secret); err != nil {
		return err
	}
	if err := l.shared.listenAt(s.path("out/socket")); err != nil {
		return err
	}
	return s.file("work/open", "open")
}

func hostilePolicy(s *site) protocol.Policy { return protecting(s, "work/.env", "work/.tool/config") }

// hostileGranted names all that the payload tries.
func hostileGranted(s *site) protocol.Policy {
	p := withRW(s, "out")
	p.Network.Mode = protocol.NetFull
	p.EnvAllow = append(p.EnvAllow, baitName)
	p.Mounts = []protocol.Mount{{Path: s.path("out/socket"), Access: protocol.ReadWrite, Required: true}}
	return p
}

// hostileErlang compiles the module on the host and runs it like the native one.
func hostileErlang(ctx context.Context, l *lane, p Probe) Finding {
	dir := filepath.Join(l.shared.base, "erlang")
	erl, why := compileErlang(ctx, dir)
	if why != "" {
		return skipped(why, "erlc")
	}
	d := hostileNative()
	args := d.args
	d.argv = func(l *lane, s *site) []string {
		return append([]string{erl, "-noinput", "-noshell", "-pa", dir, "-run", "hostile", "main", s.nonce, s.effect()}, args(l, s)...)
	}
	readable := func(policy func(*site) protocol.Policy) func(*site) protocol.Policy {
		return func(s *site) protocol.Policy {
			p := policy(s)
			p.ReadableRoots = append(p.ReadableRoots, dir)
			return p
		}
	}
	d.policy, d.granted = readable(d.policy), readable(d.granted)
	return d.probe(ctx, l, p)
}

// compileErlang returns the path of erl, or why there is nothing to run.
func compileErlang(ctx context.Context, dir string) (erl, why string) {
	erlc, err := exec.LookPath("erlc")
	if err == nil {
		erl, err = exec.LookPath("erl")
	}
	if err != nil {
		return "", "no erlc on this host (the package erlang-base has it)"
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err.Error()
	}
	source := filepath.Join(dir, "hostile.erl")
	if err := os.WriteFile(source, []byte(erlang), 0o644); err != nil {
		return "", err.Error()
	}
	ctx, cancel := context.WithTimeout(ctx, runBound)
	defer cancel()
	cmd := exec.CommandContext(ctx, erlc, "-o", dir, source)
	cmd.WaitDelay = time.Second // whatever Erlang leaves behind with the pipe
	if out, err := cmd.CombinedOutput(); err != nil && !errors.Is(err, exec.ErrWaitDelay) {
		return "", fmt.Sprintf("erlc cannot compile the module: %v: %.200s", err, out)
	}
	return erl, ""
}
