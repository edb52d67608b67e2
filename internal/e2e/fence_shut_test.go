//go:build linux

package e2e

import (
	"os"
	"strings"
	"testing"

	"sandboxd/protocol"
)

// hidden is one way to have the guard not find what it guards: a command takes the right
// to list or to search a directory away, and the next one uses what it knows is there.
type hidden struct {
	name, prepare, hide, attack, trigger string
	args                                 []string
}

func (s *site) hidings() []hidden {
	home := s.home()
	mod := home + "/go/pkg/mod"
	vcs := mod + "/cache/vcs/1234"
	chain := mod + "/golang.org/toolchain@v0.0.1-go1.99.0.linux-amd64/bin/go"
	tree := "git init -q --bare evil; git -C evil config core.bare false; git -C evil config core.fsmonitor \"$E\"; echo $PWD/evil >.git/worktrees/tree/commondir"
	nested, status := "git -C nested config core.fsmonitor \"$E\"", "chmod 755 nested nested/.git nested/deep; git -C nested status; git -C nested/deep/in status"
	return []hidden{
		{"a linked work tree", "git worktree add -q tree", "chmod 0311 .git/worktrees", tree, "git -C tree status", nil},
		{"a linked work tree, by the owner", "git worktree add -q tree", "chmod 0 .git/worktrees", "chmod 755 .git/worktrees; " + tree, "git -C tree status", nil},
		{"one linked work tree", "git worktree add -q tree", "chmod 0600 .git/worktrees/tree", "chmod 755 .git/worktrees/tree; " + tree, "git -C tree status", nil},
		{"a linked work tree of a repository inside", "git clone -q . in; git -C in worktree add -q ../tree", "chmod 0311 in/.git/worktrees", "cd in; " + tree, "git -C tree status; rm -rf evil", nil},
		{"a repository inside", "git clone -q . nested", "chmod 0311 nested", nested, status, nil},
		{"a repository inside, by the owner", "git clone -q . nested", "chmod 0 nested", "chmod 755 nested; " + nested, status, nil},
		{"a repository inside, not to be searched", "git clone -q . nested", "chmod 0600 nested", "chmod 755 nested; " + nested, status, nil},
		{"its git directory", "git clone -q . nested", "chmod 0600 nested/.git", "chmod 755 nested/.git; " + nested, status, nil},
		{"a repository further inside", "git clone -q . nested/deep/in", "chmod 0311 nested/deep; chmod 0600 nested", "chmod 755 nested; git -C nested/deep/in config core.fsmonitor \"$E\"", status, nil},
		{"a repository in another root", "git clone -q . ../other/in", "chmod 0 ../other/in", "chmod 755 ../other/in; git -C ../other/in config core.fsmonitor \"$E\"", "git -C ../other/in status", []string{"--rw", s.path("other")}},
		{"a repository in a mount", "git clone -q . ../other/in", "chmod 0311 ../other/in", "git -C ../other/in config core.fsmonitor \"$E\"", "git -C ../other/in status", []string{"--mount", s.path("other") + ":rw"}},
		{"a program that the configuration names", "mkdir tools; printf '#!/bin/sh\\n' >tools/fs; chmod +x tools/fs; git config core.fsmonitor tools/fs", "chmod 0600 tools", "chmod 755 tools; evil tools/fs", "git status", nil},
		{"a file of the home directory", "mkdir -p " + home + "/.cargo; : >" + home + "/.cargo/config.toml", "chmod 0600 " + home + "/.cargo", "chmod 755 " + home + "/.cargo; echo x >" + home + "/.cargo/config.toml", "test -s " + home + "/.cargo/config.toml && touch $M", []string{"--rw", home}},
		{"Go's repositories", makeLib + "git clone -q --bare ../lib " + vcs, "chmod 0311 " + mod + "/cache/vcs", "evil " + vcs + "/hooks/reference-transaction", "cd " + vcs + "; git fetch -q ../lib +refs/heads/*:refs/remotes/x/$$-*; git update-ref refs/heads/$$ HEAD", nil},
		{"Go's toolchains", "mkdir -p " + chain + "; rmdir " + chain, "chmod 0311 " + mod + "/golang.org", "evil " + chain, chain, nil},
		{"Go's toolchain downloads", "mkdir -p " + mod + "/cache/download/golang.org", "chmod 0600 " + mod + "/cache/download", "chmod 755 " + mod + "/cache/download; mkdir -p " + mod + "/cache/download/golang.org/toolchain/x", "test -d " + mod + "/cache/download/golang.org/toolchain/x && touch $M", nil},
	}
}

// What a command hid from the guard is not the next one's to change; without the guard it is.
func TestFenceShutDirectories(t *testing.T) {
	eachSite(t, func(t *testing.T, s *site) {
		env := s.gitEnv()
		for _, h := range s.hidings() {
			try := func(more ...string) (marked bool, first, second fenced) {
				s.onHost("cd ..; chmod -R u+rwX ws home/go home/.cargo other 2>/dev/null || true; rm -rf mark lib/.git lib/* ws/* ws/.[!.]* other/* home/go home/.cargo")
				for _, dir := range []string{"lib", "other", "home/go/pkg/mod/cache/vcs"} {
					s.mkdir(dir)
				}
				s.repository()
				s.onHost(s.evil() + h.prepare)
				args := append(append([]string{"--preset", "fence"}, h.args...), more...)
				first = s.good(env, h.hide, args...)
				second = s.run(env, s.evil()+h.attack, args...)
				s.onHost("set +e; " + s.evil() + "{ " + h.trigger + "; } >/dev/null 2>&1; true")
				return s.exists("mark"), first, second
			}
			marked, first, second := try()
			// Root sees all, but has no capability inside: what its mode closes is refused.
			if refused := second.code == 125; marked || refused && (s.u.UID != 0 || !strings.Contains(second.messages, "is closed to its own owner")) {
				t.Errorf("%s: marked %v, exit %d: %q, then %q", h.name, marked, second.code, first.messages, second.messages)
			}
			if s.u.UID != 0 && !strings.Contains(second.messages, "could not be looked at (permission denied), so all of it is read-only; `chmod u+rwx` it") {
				t.Errorf("%s: what was closed is not said: %q", h.name, second.messages)
			}
			if marked, _, r := try("--no-guard"); !marked {
				t.Errorf("the control of %s marks nothing: exit %d: %s%s", h.name, r.code, r.out, r.messages)
			}
		}
	})
}

// What can neither be looked at nor closed is refused; what this user cannot reach at all
// is nobody's business.
func TestFenceShutWorkspace(t *testing.T) {
	eachSite(t, func(t *testing.T, s *site) {
		env := s.gitEnv()
		s.repository()
		s.onHost("mkdir sub; chmod 0311 .")
		for _, preset := range []string{"fence", "workspace"} {
			r := s.run(env, "echo ran", "--preset", preset)
			if refused := r.code == 125 && r.out == "" && strings.Contains(r.messages, "`chmod u+rwx` it, or give --no-guard"); refused != (s.u.UID != 0) || !refused && r.out != "ran\n" {
				t.Errorf("%s: exit %d: %q, %q", preset, r.code, r.out, r.messages)
			}
		}
		if r := s.good(env, "echo ran", "--no-guard"); r.out != "ran\n" {
			t.Errorf("without the guard: %q", r.out)
		}
		s.onHost("chmod 0755 .")
		if os.Getuid() != 0 { // nobody else's directory can be made
			return
		}
		theirs := s.ws + "/theirs"
		if err := os.MkdirAll(theirs+"/in", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(theirs+"/in", s.u.UID, s.u.GID); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(theirs, 77, 77); err != nil {
			t.Fatal(err)
		}
		for mode, closed := range map[os.FileMode]bool{0o700: false, 0o711: true} {
			if err := os.Chmod(theirs, mode); err != nil {
				t.Fatal(err)
			}
			r := s.good(env, "echo x >made && echo ran; echo x >theirs/in/x && echo written; rm made", "--preset", "fence")
			want := "ran\n"
			if mode == 0o711 && s.u.UID == 0 { // root sees that there is no repository
				want = "ran\nwritten\n"
			}
			if said := strings.Contains(r.messages, "theirs"); r.out != want && s.u.UID != 0 || strings.Contains(r.messages, "read-only") != (closed && s.u.UID != 0) || closed && s.u.UID != 0 && !strings.Contains(r.messages, "guard: \""+theirs) || !strings.HasPrefix(r.out, "ran\n") {
				t.Errorf("%o: said %v: %q, %q", mode, said, r.out, r.messages)
			}
		}
	})
}

// A directory that a command made, or left, such that it cannot be looked at is said.
func TestFenceSaysWhatItCouldNotSee(t *testing.T) {
	eachSite(t, func(t *testing.T, s *site) {
		env := append([]string{"PATH=" + s.ws + "/venv/bin:/usr/bin:/bin"}, s.gitEnv()[1:]...)
		remote := "mkdir .git/remotes; echo URL: ../x >.git/remotes/evil; "
		for _, c := range []struct {
			script, want, shut string // what is said in any case, and of what cannot be looked at
			top                bool   // the helper sees it, too
		}{
			{"mkdir d; chmod 0755 d", "", "", true},
			{"git init -q sub; chmod 0311 sub", "the command made the repository in \"" + s.ws + "/sub\"", s.ws + "/sub", false},
			{"git init -q sub/in; chmod 0600 sub", "", s.ws + "/sub", false},
			{remote + "chmod 0311 .git/remotes", "", s.ws + "/.git/remotes", true},
			{"mkdir objects refs; : >HEAD; " + remote + "chmod 0311 .", "a bare repository of", s.ws, true},
			{"mkdir -p venv/bin; ln -s /bin/true venv/bin/ls; chmod 0311 venv/bin", "ws/venv/bin/ls\", which comes before", s.ws + "/venv/bin", false},
			{"mkdir .hg; : >.hg/hgrc; chmod 0600 .hg", "names programs that Mercurial runs", s.ws + "/.hg", false},
		} {
			fresh := func() {
				s.onHost("chmod -R u+rwX .; rm -rf ../ws/* ../ws/.[!.]*")
				s.repository()
			}
			check := func(how, said string, any bool) {
				shut := c.shut != "" && any && s.u.UID != 0
				if strings.Contains(said, `"`+c.shut+`" could not be looked at (permission denied)`) != shut || any && !strings.Contains(said, c.want) || (said == "") != (!any || c.shut == "") {
					t.Errorf("%s, %s: %q", how, c.script, said)
				}
			}
			fresh()
			check("run", s.good(env, c.script, "--preset", "fence").messages, true)
			fresh()
			s.onHost("rmdir .git/hooks 2>/dev/null || rm -r .git/hooks")
			r := s.jail(s.policy(func(p *protocol.Policy) {
				p.Mounts = []protocol.Mount{{Path: s.path("ws/.git/config"), Access: protocol.ReadOnly, Required: true}}
				p.Protected = []string{s.path("ws/.git/hooks")}
			}), "export HOME="+s.home()+"; "+c.script)
			var said []string
			for _, entry := range r.exit.Enforcement {
				if strings.HasPrefix(entry, "skip:guard: ") {
					said = append(said, entry)
				}
			}
			check("helper", strings.Join(said, "\n"), c.top)
		}
		s.onHost("chmod -R u+rwX .")
	})
}
