//go:build linux

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sandboxd/internal/fence"
)

// gitEnv is fenceEnv with an identity.
func (s *site) gitEnv() []string {
	s.u.Home = s.home() // for what runs on the host
	s.write("home/.gitconfig", "[user]\n\tname = A\n\temail = a@example.org\n[init]\n\tdefaultBranch = main\n")
	return s.fenceEnv()
}

const gitWork = `set -e
exec 2>&1
echo two >>f; git add f; git commit -qm two
echo three >>f; git stash -q; git stash pop -q; git commit -qam three
git checkout -qb topic HEAD~1; echo z >z; git add z; git commit -qm z
git rebase -q main
git log --format=%s | tr '\n' ' '
git fsck 2>&1 | grep -v '^dangling' || true
`

func TestFenceGitWorks(t *testing.T) {
	eachSite(t, func(t *testing.T, s *site) {
		env := s.gitEnv()
		s.repository()
		for _, preset := range []string{"fence", "workspace"} {
			if r := s.good(env, gitWork+"git checkout -q main; git reset -q --hard HEAD~2; git update-ref -d refs/heads/topic", "--preset", preset); r.out != "z three two one " {
				t.Errorf("%s: %q, %q", preset, r.out, r.messages)
			}
			// A fresh workspace has nothing in a clone's way, and may become a repository.
			s.onHost("rm -rf ../fresh && mkdir ../fresh")
			fresh := s.path("fresh")
			args := []string{"--preset", preset, "--workspace", fresh}
			r := s.good(env, "git init -q -b main && echo one >f && git add f && git commit -qm one && "+strings.Replace(gitWork, "set -e", "", 1), args...)
			if r.out != "z three two one " || !strings.Contains(r.messages, "the command made the repository in \""+fresh+"\"") {
				t.Errorf("%s: init: %q, %q", preset, r.out, r.messages)
			}
			s.onHost("rm -rf ../fresh && mkdir ../fresh")
			if r := s.good(env, "git clone -q "+s.ws+" . && git log --format=%s", append(args, "--ro", s.ws)...); r.out != "one\n" {
				t.Errorf("%s: clone: %q, %q", preset, r.out, r.messages)
			}
			if r := s.good(env, "git clone -q . sub && git -C sub log --format=%s; rm -rf sub", "--preset", preset); r.out != "one\n" {
				t.Errorf("%s: clone of the workspace: %q, %q", preset, r.out, r.messages)
			}
		}
	})
}

// plants are ways to make the host's git run something later.
const plants = try + `
try hook 'mkdir -p $G/hooks; echo evil >$G/hooks/pre-commit'
try config 'echo "[core] fsmonitor = evil" >>$G/config'
try set 'git config core.fsmonitor evil'
try replace 'cp $G/config c && mv -f c $G/config'
try worktreeconfig 'echo "[core] fsmonitor = evil" >>$G/config.worktree'
try commondir 'rm -rf $G/commondir; echo ../evil >$G/commondir'
try movedir "perl -e 'rename(shift, shift) or exit 1' $G $G.2"
try movehooks "perl -e 'rename(shift, shift) or exit 1' $G/hooks $G/h2"
try task 'mkdir -p .vscode; echo evil >.vscode/tasks.json'
try mcp 'echo evil >.mcp.json'
rm -rf c
`

func TestFenceGuardsGit(t *testing.T) {
	eachSite(t, func(t *testing.T, s *site) {
		env := s.gitEnv()
		s.repository()
		s.onHost("git config extensions.worktreeConfig true")
		before := s.tree()
		for _, preset := range []string{"fence", "workspace"} {
			r := s.good(env, "G=.git\n"+plants+"git status --porcelain; echo two >>f && git commit -qm two f && git reset -q --hard HEAD~1 && echo committed", "--preset", preset)
			if strings.Contains(r.out, " yes") || strings.Count(r.out, " no\n") != 10 || !strings.HasSuffix(r.out, "\ncommitted\n") {
				t.Errorf("%s: %s%s", preset, r.out, r.messages)
			}
			s.unchanged(before)
		}
		// What an own repository's configuration names is guarded as well.
		s.onHost("git config core.hooksPath .husky; git config include.path ../shared.cfg; mkdir .husky; : >shared.cfg")
		r := s.good(env, try+"try hook 'echo evil >.husky/pre-commit'\ntry include 'echo evil >>shared.cfg'\ntry other 'echo x >other'", "--preset", "fence")
		if r.out != "hook no\ninclude no\nother yes\n" {
			t.Errorf("configured: %q, %q", r.out, r.messages)
		}
		s.onHost("git config --unset core.hooksPath; git config --unset include.path")
		// The user's own words win over the guard.
		if r := s.good(env, try+"try hook 'echo x >.git/hooks/x'\ntry config 'echo >>.git/config'", "--rw", s.path("ws/.git/hooks")); r.out != "hook yes\nconfig no\n" {
			t.Errorf("--rw: %q, %q", r.out, r.messages)
		}
		if r := s.good(env, "G=.git\n"+plants, "--no-guard"); strings.Count(r.out, " yes\n") < 8 {
			t.Errorf("the control: %s%s", r.out, r.messages)
		}
	})
}

func TestFenceReportsABareRepository(t *testing.T) {
	eachSite(t, func(t *testing.T, s *site) {
		env := s.gitEnv()
		s.repository()
		for _, c := range []struct{ script, want string }{
			{"echo x >x", ""},
			{"git clone -q --bare . b && mv b/HEAD b/objects b/refs b/config .; rm -rf b", "bare repository"},
			{"rm .git/HEAD", ".git/HEAD"},
		} {
			r := s.good(env, c.script, "--preset", "fence")
			if said := strings.Contains(r.messages, "NOT enforced  guard:"); said != (c.want != "") || !strings.Contains(r.messages, c.want) {
				t.Errorf("%s: %q", c.script, r.messages)
			}
		}
	})
}

func TestFenceLinkedWorktree(t *testing.T) {
	eachSite(t, func(t *testing.T, s *site) {
		env := s.gitEnv()
		s.mkdir("main")
		s.onHost("git -C ../main init -q && cd ../main && echo one >f && git add f && git commit -qm one && rm -rf ../ws && git worktree add -q ../ws")
		for _, preset := range []string{"fence", "workspace"} {
			r := s.good(env, gitWork+"git checkout -q ws; git reset -q --hard HEAD~2; git update-ref -d refs/heads/topic", "--preset", preset)
			if r.out != "z two one " {
				t.Errorf("%s: %q, %q", preset, r.out, r.messages)
			}
		}
		before := s.tree()
		r := s.good(env, "G=$(git rev-parse --git-common-dir)\n"+plants+`A=$(git rev-parse --git-dir)
try pointer 'echo gitdir: /evil >.git'
try rmpointer 'rm -f .git'
try admin 'echo ../../../evil >$A/commondir'
try back 'echo /evil >$A/gitdir'
git status --porcelain`, "--preset", "fence")
		if strings.Contains(r.out, " yes") || strings.Count(r.out, " no\n") != 14 || strings.Contains(r.messages, "not granted") {
			t.Errorf("%s%s", r.out, r.messages)
		}
		s.unchanged(before)
	})
}

// A .git file that names what does not name the workspace back gives nothing.
func TestFenceFalsePointer(t *testing.T) {
	eachSite(t, func(t *testing.T, s *site) {
		env := s.gitEnv()
		s.mkdir("victim")
		s.onHost("git -C ../victim init -q && cd ../victim && echo one >f && git add f && git commit -qm one && git worktree add -q ../other && mkdir ../fake && cd ../fake && mkdir -p wt objects refs")
		victim := s.path("victim/.git")
		attack := try + "try write 'echo x >" + victim + "/planted'\ntry objects 'echo x >" + victim + "/objects/planted'\ntry own 'echo x >own'"
		for name, prepare := range map[string]string{
			"a repository":            "echo gitdir: " + victim + " >.git",
			"someone else's worktree": "echo gitdir: " + victim + "/worktrees/other >.git",
			"a worktree of the command's, whose common directory is the victim's": "mkdir -p .x && echo " + s.ws + "/.git >.x/gitdir && echo " + victim + " >.x/commondir && cp ../victim/.git/HEAD .x && echo gitdir: .x >.git",
			"one through a planted link":                                          "ln -s " + victim + " l; echo gitdir: l/worktrees/other >.git",
			"a directory that is no repository":                                   "echo gitdir: " + s.path("home") + " >.git",
		} {
			s.onHost("rm -rf .git .x l; " + prepare)
			r := s.good(env, attack, "--preset", "fence")
			if r.out != "write no\nobjects no\nown yes\n" || !strings.Contains(r.messages, "git directory of") {
				t.Errorf("%s: %q, %q", name, r.out, r.messages)
			}
		}
		if s.exists("victim/.git/planted") {
			t.Error("the victim was written")
		}
		s.onHost("rm -rf .git; echo gitdir: " + victim + " >.git")
		if r := s.good(env, attack, "--preset", "fence", "--rw", victim); !strings.HasPrefix(r.out, "write yes\n") {
			t.Errorf("the control: %q, %q", r.out, r.messages)
		}
	})
}

func TestFenceSubmodule(t *testing.T) {
	eachSite(t, func(t *testing.T, s *site) {
		env := s.gitEnv()
		s.mkdir("lib")
		s.onHost("cd ../lib && git init -q && echo lib >l && git add l && git commit -qm lib")
		s.repository()
		s.onHost("git -c protocol.file.allow=always submodule --quiet add ../lib deep/sub && git commit -qm sub")
		r := s.good(env, "cd deep/sub\nG=$(git rev-parse --git-dir)\n"+plants+"try pointer 'echo gitdir: /evil >.git'\necho two >>l && git commit -qam two && git log --format=%s", "--preset", "fence")
		// The agents' files are guarded at the workspace, not in its submodule.
		if strings.Count(r.out, " no\n") != 9 || !strings.Contains(r.out, "task yes\nmcp yes\n") || !strings.HasSuffix(r.out, "pointer no\ntwo\nlib\n") {
			t.Errorf("%s%s", r.out, r.messages)
		}
		// With the submodule alone as the workspace its directory is found and verified.
		r = s.good(env, "echo three >>l && git commit -qam three && git log --format=%s | head -1; "+try+"try hook 'echo x >$(git rev-parse --git-dir)/hooks/x'", "--preset", "fence", "--workspace", s.path("ws/deep/sub"))
		if r.out != "three\nhook no\n" {
			t.Errorf("%q, %q", r.out, r.messages)
		}
	})
}

func TestFenceRefusesWhatItCannotGuard(t *testing.T) {
	eachSite(t, func(t *testing.T, s *site) {
		env := s.gitEnv()
		s.repository()
		s.onHost("mv .git/hooks myhooks; ln -s ../myhooks .git/hooks")
		r := s.run(env, "echo ran")
		if r.code != 125 || r.out != "" || !strings.Contains(r.messages, ".git/hooks") || !strings.Contains(r.messages, "--no-guard") {
			t.Errorf("exit %d, %q, %q", r.code, r.out, r.messages)
		}
		if r := s.good(env, "echo ran", "--no-guard"); r.out != "ran\n" {
			t.Errorf("the control: %q", r.out)
		}
		s.onHost("mv .git real; ln -s real .git")
		if r := s.run(env, "echo ran"); r.code != 125 || !strings.Contains(r.messages, "symbolic link") {
			t.Errorf("exit %d, %q", r.code, r.messages)
		}
	})
}

// Readers of what is guarded go on while a placeholder stands in its place.
func TestFenceReadersBesidePlaceholders(t *testing.T) {
	s := newSite(t, meAtHome())
	env := s.gitEnv()
	os.Remove(s.path("home/.gitconfig"))
	script := "git config --global --list; git --version >/dev/null && bash -ic 'echo bash' 2>/dev/null; bash -lc 'echo login; exit' 2>/dev/null; sh -lc 'echo sh' 2>/dev/null; PATH=$HOME/bin:$HOME/.local/bin:$PATH env echo found"
	want := "bash\nlogin\nsh\nfound\n"
	if _, err := os.Stat("/usr/bin/zsh"); err == nil {
		script, want = script+"; zsh -ilc 'echo zsh' 2>/dev/null", want+"zsh\n"
	}
	script += "; " + try
	for _, g := range fence.HomeGuarded {
		if !g.IfThere {
			script += "\nmkdir -p $HOME/" + filepath.Dir(g.Name) + " 2>/dev/null; try " + g.Name + " 'echo x >>$HOME/" + g.Name + "'; try " + g.Name + " 'mkdir $HOME/" + g.Name + "'"
			want += g.Name + " no\n" + g.Name + " no\n"
		}
	}
	// Granted by any name: as the workspace, and beside another one.
	for _, args := range [][]string{{"--workspace", s.home()}, {"--rw", s.home()}, {"--workspace", s.dir}} {
		r := s.run(env, script, append([]string{"--preset", "fence"}, args...)...)
		if r.out != want {
			t.Errorf("%q: %q, %q", args, r.out, r.messages)
		}
	}
}
