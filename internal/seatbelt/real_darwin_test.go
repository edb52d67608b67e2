package seatbelt

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"sandboxd/internal/host"
	"sandboxd/internal/plan"
	"sandboxd/internal/testenv"
	"sandboxd/protocol"
)

// The kernel agrees with the evaluator: a shell under the profile of a real tree.
func TestRealProfile(t *testing.T) {
	if out, err := exec.Command(Path, "-p", Trial, TrialProgram).CombinedOutput(); err != nil {
		testenv.Skip(t, "seatbelt", string(out))
	}
	base, err := os.MkdirTemp("/private/tmp", "sandboxd-real-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	work := base + "/work"
	for _, dir := range []string{work + "/.git/hooks", work + "/ro", base + "/scratch", base + "/other"} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{work + "/a", work + "/ro/f", work + "/.env", base + "/other/f"} {
		if err := os.WriteFile(file, []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	p := protocol.Policy{WritableRoots: []string{work}, ReadableRoots: []string{work + "/ro"}, Scratch: protocol.ScratchTmpfs,
		Protected: []string{work + "/.git/hooks", work + "/.env", work + "/new/.git/hooks"}}
	f := host.Facts{OS: "darwin", UID: os.Getuid(), GID: os.Getgid(), ScratchDir: base + "/scratch"}
	f.Layout = surveyReal(plan.Paths(p, f))
	pl, err := plan.Build(p, f)
	if err != nil {
		t.Fatal(err)
	}
	profile, err := Render(pl, Options{Layout: f.Layout, Witness: base + "/other"})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	connect := fmt.Sprintf("nc -z -w 5 127.0.0.1 %d", listener.Addr().(*net.TCPAddr).Port)
	if out, err := exec.Command("/bin/sh", "-c", connect).CombinedOutput(); err != nil {
		t.Fatalf("the listener cannot be reached without a profile: %v\n%s", err, out)
	}
	for _, c := range []struct {
		script string
		want   bool
	}{
		{"true", true},
		{"echo x >/dev/null", true},
		{"cat a && echo y >a && echo z >b && rm b", true},
		{"cat ro/f", true},
		{"echo y >ro/f", false},
		{"mv ro ro2", false},
		{"cat .env", false},
		{"echo y >.env", false},
		{"rm .env", false},
		{"touch .git/hooks/x", false},
		{"touch .git/config", true},
		{"mv .git g", false},
		{"mkdir -p new/.git/hooks", false},
		{"mkdir NEW", false},
		{"ln ro/f linked && echo y >linked", false},
		{"cat ../other/f", false},
		{"ls /Users", false},
		{"touch ../scratch/x", true},
		{connect, false}, // and outside of the profile it works, see above
	} {
		cmd := exec.Command(Path, append(profile.Args(""), "/bin/sh", "-c", c.script)...)
		cmd.Dir, cmd.Env = work, []string{"PATH=/usr/bin:/bin"}
		out, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) || exit != nil && (exit.ExitCode() == ExitProfile || exit.ExitCode() == ExitNested) {
			t.Fatalf("%s: %v\n%s", c.script, err, out)
		}
		if (err == nil) != c.want {
			t.Errorf("%s: %v, want success: %t\n%s", c.script, err, c.want, out)
		}
	}
}

// surveyReal looks at every component of the paths.
func surveyReal(paths []string) host.Layout {
	l := host.Layout{}
	var look func(path string, hops int)
	look = func(path string, hops int) {
		if path != "/" {
			look(host.Parent(path), hops)
		}
		if _, done := l[path]; done || hops > host.MaxHops {
			return
		}
		info, err := os.Lstat(path)
		switch {
		case err != nil:
			l[path] = host.Node{Kind: host.Missing}
		case info.Mode()&os.ModeSymlink != 0:
			target, _ := os.Readlink(path)
			l[path] = host.Node{Kind: host.Link, Target: target}
			if !filepath.IsAbs(target) {
				target = filepath.Join(filepath.Dir(path), target)
			}
			look(filepath.Clean(target), hops+1)
		case info.IsDir():
			l[path] = host.Node{Kind: host.Dir, Mode: 0o755, UID: uint32(os.Getuid())}
		default:
			l[path] = host.Node{Kind: host.File, Nlink: 1, UID: uint32(os.Getuid())}
		}
	}
	for _, path := range paths {
		look(path, 0)
	}
	return l
}
