//go:build linux

package e2e

import (
	"strings"
	"testing"

	"sandboxd/internal/testenv"
	"sandboxd/protocol"
)

// A device is opened by the command itself: inherited descriptors do not count.
func TestFenceDevices(t *testing.T) {
	eachSite(t, func(t *testing.T, s *site) {
		env := s.gitEnv()
		s.repository()
		for _, preset := range []string{"fence", "workspace"} {
			const script = "set -e; : > /dev/null; : < /dev/zero; head -c 4 /dev/urandom >/dev/null; git log --format=%s; /usr/bin/python3 -c pass; echo x >/dev/full 2>/dev/null || echo full"
			if r := s.good(env, script, "--preset", preset); r.out != "one\nfull\n" {
				t.Errorf("%s: %q, %q", preset, r.out, r.messages)
			}
			if r := s.run(env, try+"try disk 'test -b /dev/vda || test -b /dev/sda'\ntry make 'echo x >/dev/x'", "--preset", preset); r.out != "disk no\nmake no\n" {
				t.Errorf("%s: %q", preset, r.out)
			}
		}
	})
}

// planted are grants that a command which may write the directory above them can
// replace by a link; each is a policy over the same nested place.
func planted(s *site) map[string]func(*protocol.Policy) {
	at := s.path("ws/nested")
	return map[string]func(*protocol.Policy){
		"a nested root": func(p *protocol.Policy) { p.WritableRoots = append(p.WritableRoots, at) },
		"host scratch":  func(p *protocol.Policy) { p.Scratch = at },
		"a rw mount": func(p *protocol.Policy) {
			p.Mounts = []protocol.Mount{{Path: at, Access: protocol.ReadWrite, Required: true}}
		},
		"a worktree's git directory": func(p *protocol.Policy) {
			p.WritableRoots = append(p.WritableRoots, at)
			p.Protected = []string{at + "/commondir"}
		},
		"a readable root": func(p *protocol.Policy) { p.ReadableRoots = []string{at} },
	}
}

func TestFencePlantedLink(t *testing.T) {
	eachSite(t, func(t *testing.T, s *site) {
		s.write("victim/secret", "sesame\n")
		swap := "rm -rf nested && ln -s " + s.path("victim") + " nested"
		for name, change := range planted(s) {
			for _, helpers := range []int{1, 2} {
				s.onHost("rm -rf nested; mkdir nested")
				// The first command may write the directory, and has no mount on it.
				c := connect(t, s.u, s.policy())
				if r := c.try(2, s.ws, swap); r.exit.Code != 0 {
					t.Fatalf("cannot plant: %s", r.stderr)
				}
				p := s.policy(change)
				if helpers == 2 {
					s.end(c)
					c = connect(t, s.u, p)
				}
				c.send(3, protocol.ExecStart{Argv: []string{"sh", "-c", "cat nested/secret; echo x >nested/planted"}, Cwd: s.ws, Token: []byte("t"), Policy: p.Append(nil)})
				r := c.collect(3)
				if r.fail == nil || r.fail.Code != protocol.CodeRefused || !strings.Contains(r.fail.Msg, s.path("ws/nested")) || !strings.Contains(r.fail.Msg, "a confined command could have made") {
					t.Errorf("%s, %d helpers: %+v, %+v", name, helpers, r.fail, r.exit)
				}
				s.end(c)
				if s.exists("victim/planted") {
					t.Fatalf("%s, %d helpers: written outside", name, helpers)
				}
				// The control: the same policy over a directory runs.
				s.onHost("rm -f nested; mkdir nested")
				if r := s.jail(p, "true"); r.exit.Code != 0 {
					t.Errorf("%s: the control: %+v", name, r.exit)
				}
			}
		}
	})
}

// The same of a worktree's git directory: a run on the directory around both puts a
// link in its place, or in that of the common one, and a run in the worktree follows
// neither.
func TestFencePlantedGitDirectory(t *testing.T) {
	eachSite(t, func(t *testing.T, s *site) {
		env := s.gitEnv()
		s.mkdir("victim")
		s.onHost("git -C ../victim init -q && cd ../victim && echo one >f && git add f && git commit -qm one")
		tree := s.path("ws/tree")
		write := try + "try pack 'echo x >$(git rev-parse --git-common-dir)/planted'"
		for name, plant := range map[string]string{
			"the repository":      "mv main/.git gone && ln -s ../../victim/.git main/.git",
			"the worktree's own":  "mkdir evil && cp -r main/.git/worktrees evil/ && echo ../../../../victim/.git >evil/worktrees/tree/commondir && mv main/.git gone && ln -s ../evil main/.git",
			"what is around both": "mkdir -p x && cp -r main x && ln -sfn ../../../victim/.git/objects x/main/.git/objects; mv main gone; ln -s x/main main",
		} {
			s.onHost("rm -rf ../ws/* && mkdir main && git -C main init -q && cd main && echo one >f && git add f && git commit -qm one && git worktree add -q ../tree")
			before := s.read("victim/.git/config") + s.onHost("cd ../victim; find . | sort")
			in := []string{"--preset", "fence", "--workspace", tree}
			if r := s.good(env, write, in...); r.out != "pack yes\n" {
				t.Errorf("%s, before: %q, %q", name, r.out, r.messages)
			}
			s.good(env, plant, "--preset", "fence", "--no-guard")
			s.run(env, "cd "+tree+"\n"+write+"\nfor d in $(git rev-parse --git-dir --git-common-dir) "+s.path("victim/.git")+"; do echo x >$d/planted; echo x >$d/objects/planted; done", in...)
			if after := s.read("victim/.git/config") + s.onHost("cd ../victim; find . | sort"); after != before {
				t.Errorf("%s: the victim was written:\n%s", name, after)
			}
			// The control: granted by name, it is written.
			if r := s.good(env, "echo x >"+s.path("victim/.git/planted"), append(in, "--rw", s.path("victim"))...); !s.exists("victim/.git/planted") {
				t.Errorf("the control: %q", r.messages)
			}
			s.onHost("rm ../victim/.git/planted")
		}
	})
}

// The same through presets: a cache that an earlier fenced run replaced by a link.
func TestFencePlantedCache(t *testing.T) {
	eachSite(t, func(t *testing.T, s *site) {
		s.mkdir("home/.ssh")
		env := s.fenceEnv("UV_CACHE_DIR=" + s.path("ws/cache/uv"))
		s.mkdir("ws/cache/uv")
		write := try + "try cache 'echo x >cache/uv/planted'\n"
		if r := s.good(env, write, "--preset", "fence"); r.out != "cache yes\n" {
			t.Errorf("before: %q, %q", r.out, r.messages)
		}
		// This run has the cache elsewhere, so that nothing holds the directory.
		s.good(s.fenceEnv(), "rm -rf cache/uv && ln -s $HOME/.ssh cache/uv", "--preset", "fence")
		r := s.good(env, write, "--preset", "fence")
		if r.out != "cache no\n" || !strings.Contains(r.messages, "uv cache: not granted") || !strings.Contains(r.messages, "a confined command could have made") {
			t.Errorf("after: %q, %q", r.out, r.messages)
		}
		if s.exists("home/.ssh/planted") {
			t.Error("written outside")
		}
	})
}

// While a command swaps a root for a link and back, another helper's commands start
// on that root: what runs writes the root, or nothing.
func TestFenceRacingSwap(t *testing.T) {
	eachSite(t, func(t *testing.T, s *site) {
		s.mkdir("victim")
		s.mkdir("ws/nested")
		s.mkdir("ws/spare")
		swapper := connect(t, s.u, s.policy())
		marker := testenv.NewMarker(s.ws, "swapping")
		swapper.start(2, s.ws, "/usr/bin/python3", "-c", `
import os, ctypes, random, time
os.symlink("`+s.path("victim")+`", "link")
open("swapping.tmp", "w").close(); os.rename("swapping.tmp", "swapping")
libc = ctypes.CDLL(None)
while not os.path.exists("stop"):
    # RENAME_EXCHANGE: there is always something of that name. The link stays for an
    # instant, the directory for as long as some of the executions take, or a part of it.
    libc.renameat2(-100, b"nested", -100, b"link", 2)
    time.sleep(random.choice([0, 0.001, 0.003]))
    libc.renameat2(-100, b"nested", -100, b"link", 2)
    time.sleep(random.choice([0, 0.002, 0.01, 0.05, 0.2]) * random.random())
`)
		marker.Wait(t)
		p := s.policy(func(p *protocol.Policy) { p.WritableRoots = append(p.WritableRoots, s.path("ws/nested")) })
		c := connect(t, s.u, p)
		ran, refused := 0, 0
		const starts = 500
		for i := range starts {
			c.start(uint64(i+2), s.ws, "touch", "nested/written")
			switch r := c.collect(uint64(i + 2)); {
			case r.fail != nil:
				refused++
			case r.exit.Code == 0:
				ran++
			}
			if s.exists("victim/written") {
				t.Fatal("written outside")
			}
		}
		s.end(c)
		s.write("ws/stop", "")
		swapper.collect(2)
		s.end(swapper)
		if !s.exists("ws/nested/written") && !s.exists("ws/link/written") {
			t.Error("nothing was written inside either")
		}
		t.Logf("%d of %d ran, %d were refused", ran, starts, refused)
		if ran == 0 || refused == 0 {
			t.Errorf("%d ran and %d were refused: the race was not one", ran, refused)
		}
	})
}

// Runs that begin and end at any time in one workspace share its placeholders: none is
// refused or unguarded for another one's, and they are taken away.
func TestFenceManyRunsAtOnce(t *testing.T) {
	eachSite(t, func(t *testing.T, s *site) {
		env := s.gitEnv()
		s.repository()
		s.onHost("rm -r .git/hooks; git clone -q . in")
		const want = "mcp no\nhook no\nmodule no\ninner no\nfile yes\n"
		script := try + `own=f$$
try mcp 'echo x >.mcp.json'
try hook 'mkdir -p .git/hooks && echo x >.git/hooks/pre-commit'
try module 'mkdir -p .git/modules/m'
try inner 'git -C in config core.fsmonitor x'
try file "echo x >$own"`
		results := make(chan fenced)
		const at, each = 6, 3
		for range at {
			go func() {
				for range each {
					results <- s.run(env, script, "--preset", "fence")
				}
			}()
		}
		for range at * each {
			if r := <-results; r.code != 0 || r.out != want {
				t.Errorf("exit %d: %q, %q", r.code, r.out, r.messages)
			}
		}
		// What one of them left because it saw a jail being built, of anybody's, a later
		// one takes away.
		litter := ""
		for range 20 {
			if litter = s.onHost("ls -Ad .mcp.json .vscode .git/hooks .git/modules 2>/dev/null || true"); litter == "" {
				break
			}
			s.good(env, "true", "--preset", "fence")
		}
		if litter != "" {
			t.Errorf("left behind: %q", litter)
		}
	})
}
