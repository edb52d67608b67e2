//go:build linux

package e2e

import (
	"fmt"
	"strings"
	"testing"

	"sandboxd/internal/testenv"
	"sandboxd/protocol"
)

// plant is one way to have the host's git run something later. Its scripts know
// evil, which makes a program at a place, and E, the program's text in one line.
type plant struct {
	name    string
	prepare string // on the host, in a workspace that is a repository
	attack  string // in the jail
	trigger string // on the host: what a person would do next
	args    []string
	in      string // where attack starts, below the workspace
}

// evil FILE makes a program that leaves a mark on the host; E is the same as a
// command of git's configuration.
func (s *site) evil() string {
	return "M=" + s.path("mark") + "\nE=\"touch $M #\"\nW=" + s.ws + "\nevil() { mkdir -p \"$(dirname \"$1\")\"; printf '#!/bin/sh\\ntouch %s\\n' $M >\"$1\" && chmod +x \"$1\"; }\n"
}

const makeLib = "cd ../lib && git init -q && echo l >l && git add l && git commit -qm l && cd ../ws\n"
const addSub = makeLib + "git -c protocol.file.allow=always submodule --quiet add ../lib sub && git commit -qm sub\n"

func (s *site) plants() []plant {
	home, lib := s.home(), s.mkdir("lib")
	vcs := home + "/go/pkg/mod/cache/vcs/1234"
	db := home + "/.cargo/git/db/lib-1234"
	fetch := "git fetch -q " + lib + " +refs/heads/*:refs/remotes/x/$$-*"
	return []plant{
		{name: "a repository inside", prepare: "git clone -q . deep/in", attack: "git -C deep/in config core.fsmonitor \"$E\"", trigger: "git -C deep/in status"},
		{name: "a repository inside, in the index", prepare: "git clone -q . in && git add in 2>/dev/null && git commit -qm in", attack: "git -C in config core.fsmonitor \"$E\"", trigger: "git status"},
		{name: "a bare repository inside", prepare: "git clone -q --bare . in.git", attack: "git -C in.git config alias.x \"!$E\"", trigger: "git -C in.git x"},
		{name: "a work tree inside, of a repository inside", prepare: "git clone -q . in && git -C in worktree add -q ../tree && git -C tree config extensions.worktreeConfig true", attack: "git -C tree config --worktree core.fsmonitor \"$E\"", trigger: "git -C tree status"},
		{name: "another work tree's pointer", prepare: "git clone -q . in && git worktree add -q tree", attack: "rm tree/.git && echo gitdir: $W/in/.git >tree/.git", trigger: "test $(git -C tree rev-parse --git-dir) = $PWD/.git/worktrees/tree || touch $M"},
		{name: "a git directory beside its pointer", prepare: "mv .git data && echo gitdir: data >.git", attack: "git config core.fsmonitor \"$E\"", trigger: "git status"},
		{name: "a pointer to nothing yet", prepare: "rm -rf .git && echo gitdir: data >.git", attack: "git init -q --bare data; git -C data config core.bare false; git -C data config core.fsmonitor \"$E\"", trigger: "git status"},
		{name: "another root", prepare: "git clone -q . ../other", attack: "git -C ../other config core.fsmonitor \"$E\"", trigger: "git -C ../other status", args: []string{"--rw", s.path("other")}},
		{name: "a mount", prepare: "git clone -q . ../other", attack: "git -C ../other config core.fsmonitor \"$E\"", trigger: "git -C ../other status", args: []string{"--mount", s.path("other") + ":rw"}},
		{name: "a bare workspace", prepare: "git clone -q --bare . ../bare", attack: "git config alias.x \"!$E\"; evil hooks/reference-transaction", trigger: "cd ../bare; git x || git branch x HEAD", args: []string{"--workspace", s.path("bare")}, in: "../bare"},
		{name: "a submodule", prepare: addSub, attack: "git -C sub config core.fsmonitor \"$E\"", trigger: "git status"},
		{name: "a submodule of a linked work tree", prepare: addSub + "git worktree add -q ../tree && git -C ../tree -c protocol.file.allow=always submodule --quiet update --init",
			attack: "git -C sub config core.fsmonitor \"$E\"", trigger: "git -C ../tree status", args: []string{"--workspace", s.path("tree")}, in: "../tree"},
		{name: "a submodule that is not there yet", prepare: addSub + "git submodule --quiet deinit -f sub && rm -rf .git/modules/sub",
			attack:  "git clone -q --bare " + lib + " .git/modules/sub && cd .git/modules/sub && git config core.fsmonitor \"$E\"; git config core.bare false; git config core.worktree ../../../sub",
			trigger: "git -c protocol.file.allow=always submodule --quiet update --init; git status", args: []string{"--ro", lib}},
		{name: "the first submodule", prepare: makeLib, attack: "git clone -q --bare " + lib + " .git/modules/sub && cd .git/modules/sub && git config core.fsmonitor \"$E\"; git config core.bare false; git config core.worktree ../../../sub",
			trigger: "git -c protocol.file.allow=always submodule --quiet add --force ../lib sub || true; git status", args: []string{"--ro", lib}},
		{name: "the repository around the workspace, in the scratch", prepare: "git clone -q . ../other && mkdir ../other/sub", attack: "git -C .. config core.fsmonitor \"$E\"", trigger: "git -C ../other status",
			args: []string{"--workspace", s.path("other/sub"), "--scratch", s.path("other")}, in: "../other/sub"},
		{name: "a rebase of a submodule's git directory", prepare: addSub + "mkdir .git/modules/more", attack: "git clone -q . .git/modules/more/x; git clone -q --bare . .git/modules/y; cp -r .git/modules/sub .git/modules/z", trigger: "ls -d .git/modules/*/x .git/modules/[yz] && touch $M"},
		{name: "hooks that the user's configuration names", prepare: "git config --global core.hooksPath .githooks", attack: "evil .githooks/pre-commit", trigger: "git commit -q --allow-empty -m x; git config --global --unset core.hooksPath"},
		{name: "hooks that an included file names", prepare: "git config --global includeIf.gitdir:" + s.ws + "/.path " + home + "/inc; printf '[core]\\n\\thooksPath = .h' >" + home + "/inc; mkdir .h", attack: "evil .h/pre-commit", trigger: "git commit -q --allow-empty -m x; git config --global --remove-section includeIf.gitdir:" + s.ws + "/"},
		{name: "hooks that config.worktree names", prepare: "git config extensions.worktreeConfig true; git config --worktree core.hooksPath .h; mkdir .h", attack: "evil .h/pre-commit", trigger: "git commit -q --allow-empty -m x"},
		{name: "hooks for the repository around the workspace", prepare: "mkdir -p web/.husky; git config core.hooksPath web/.husky", attack: "evil .husky/pre-commit", trigger: "git commit -q --allow-empty -m x", args: []string{"--workspace", s.path("ws/web")}, in: "web"},
		{name: "hooks beside a dispatcher", prepare: "mkdir -p .husky/_; git config core.hooksPath .husky/_; echo 'sh -e .husky/pre-commit' >.husky/_/pre-commit; chmod +x .husky/_/pre-commit; : >.husky/pre-commit", attack: "evil .husky/pre-commit", trigger: "git commit -q --allow-empty -m x"},
		{name: "a hook that is a link", prepare: "mkdir tools; printf '#!/bin/sh\\n' >tools/check; chmod +x tools/check; ln -s ../../tools/check .git/hooks/pre-commit", attack: "evil tools/check || { evil t/check && mv tools old && mv t tools; }", trigger: "git commit -q --allow-empty -m x"},
		{name: "a hook that is a link to nothing", prepare: "mkdir tools; ln -s ../../tools/check .git/hooks/pre-commit", attack: "evil tools/check", trigger: "git commit -q --allow-empty -m x"},
		{name: "a program that the configuration names", prepare: "mkdir tools; printf '#!/bin/sh\\n' >tools/fs; chmod +x tools/fs; git config core.fsmonitor tools/fs", attack: "evil tools/fs", trigger: "git status"},
		{name: "a script that the user's configuration names", prepare: "mkdir tools; : >tools/clean.sh; echo '* filter=x' >.gitattributes; git config --global filter.x.clean 'sh tools/clean.sh'", attack: "echo \"touch $M\" >tools/clean.sh", trigger: "echo x >x; git add x; git config --global --remove-section filter.x"},
		{name: "attributes", prepare: "git config --global filter.x.clean cat", attack: "echo '* filter=y diff=y merge=y' >.git/info/attributes; git config filter.y.clean \"$E\"; git config diff.y.textconv \"$E\"", trigger: "echo x >x; git add x; git diff HEAD"},
		{name: "Go's repositories", prepare: makeLib + "git clone -q --bare ../lib " + vcs, attack: "evil " + vcs + "/hooks/reference-transaction", trigger: "cd " + vcs + "; " + fetch},
		{name: "cargo's repositories", prepare: makeLib + "git clone -q --bare ../lib " + db, attack: "evil " + db + "/hooks/reference-transaction", trigger: "cd " + db + "; " + fetch},
		{name: "Go's toolchains", prepare: "mkdir -p " + home + "/go/pkg/mod/golang.org/toolchain@v0.0.1-go1.99.0.linux-amd64/bin", attack: "evil " + home + "/go/pkg/mod/golang.org/toolchain@v0.0.1-go1.99.0.linux-amd64/bin/go", trigger: home + "/go/pkg/mod/golang.org/toolchain@v0.0.1-go1.99.0.linux-amd64/bin/go"},
		{name: "Gradle's distributions", prepare: "mkdir -p " + home + "/.gradle/wrapper/dists/gradle-8-bin/x/gradle-8/bin", attack: "evil " + home + "/.gradle/wrapper/dists/gradle-8-bin/x/gradle-8/bin/gradle", trigger: home + "/.gradle/wrapper/dists/gradle-8-bin/x/gradle-8/bin/gradle"},
		{name: "the home directory around the workspace", prepare: "mkdir -p " + home + "/src; : >" + home + "/.bashrc", attack: "echo $E >>" + home + "/.bashrc", trigger: "bash -c '. $HOME/.bashrc'; : >$HOME/.bashrc", args: []string{"--rw", home}},
		{name: "a part of the home directory", prepare: "mkdir -p " + home + "/.config", attack: "mkdir -p " + home + "/.config/git; printf '[core]\\n\\tfsmonitor = \"%s\"\\n' \"$E\" >" + home + "/.config/git/config", trigger: "git status; rm -f " + home + "/.config/git/config", args: []string{"--rw", home + "/.config"}},
		{name: "a file of the home directory that is a link into the workspace", prepare: ": >rc; ln -sf $W/rc " + home + "/.bash_aliases", attack: "echo $E >rc", trigger: "bash -c '. " + home + "/.bash_aliases'; rm " + home + "/.bash_aliases"},
		{name: "a directory of the home directory that is a link into the workspace", prepare: "mkdir cfg; rm -rf " + home + "/.config; ln -s $W/cfg " + home + "/.config", attack: "mkdir -p cfg/git; printf '[core]\\n\\tfsmonitor = \"%s\"\\n' \"$E\" >cfg/git/config", trigger: "git status; rm " + home + "/.config"},
		{name: "the programs in a part of the home directory", prepare: "mkdir -p " + home + "/.local/share", attack: "evil " + home + "/.local/bin/new", trigger: home + "/.local/bin/new", args: []string{"--rw", home + "/.local"}},
	}
}

// TestFenceNothingIsPlanted: what a command does under the guard runs nothing on the
// host; the same without the guard does, so that each of the ways is one.
func TestFenceNothingIsPlanted(t *testing.T) {
	eachSite(t, func(t *testing.T, s *site) {
		env := s.gitEnv()
		for _, p := range s.plants() {
			try := func(args ...string) (marked bool, r fenced) {
				s.onHost("cd ..; chmod -R u+w ws home/go 2>/dev/null || true; rm -rf mark lib/.git lib/* ws/* ws/.[!.]* tree other bare home/go home/.cargo home/.gradle")
				for _, dir := range []string{"home/go/pkg/mod/cache/vcs", "home/.cargo/git/db", "home/.gradle/wrapper/dists", "home/.gradle/caches"} {
					s.mkdir(dir)
				}
				s.repository()
				s.onHost(s.evil() + p.prepare)
				r = s.run(env, "cd "+s.path("ws")+"/"+p.in+" 2>/dev/null\n"+s.evil()+p.attack, append(append([]string{"--preset", "fence"}, p.args...), args...)...)
				s.onHost("set +e; " + s.evil() + "{ " + p.trigger + "; } >/dev/null 2>&1; true")
				return s.exists("mark"), r
			}
			if marked, r := try(); marked || r.code == 125 {
				t.Errorf("%s: exit %d: %s", p.name, r.code, r.messages)
			}
			if marked, r := try("--no-guard"); !marked {
				t.Errorf("the control of %s marks nothing: exit %d: %s%s", p.name, r.code, r.out, r.messages)
			}
		}
	})
}

// What is started outside the jail is nothing that a command could have written, and
// a name with a pattern's characters is no pattern.
func TestFenceRunsNothingPlanted(t *testing.T) {
	eachSite(t, func(t *testing.T, s *site) {
		env := s.gitEnv()
		s.repository()
		s.onHost(s.evil() + "evil tools/git; ln -s tools links; mkdir ../bin; ln -s ../ws/tools/git ../bin/git; evil ../own/git; evil ../else/git; ln -s ../else away; ln -s ws/away ../through")
		shared := testenv.TempDir(t, s.u) // a command of the fence could have written it
		s.onHost(s.evil() + "cp ../own/git " + shared)
		for _, c := range []struct {
			path   string
			marked bool
		}{{s.ws + "/tools", false}, {s.ws + "/links", false}, {s.path("bin"), false}, {"tools", false},
			{s.ws + "/away", false}, {s.path("through"), false}, {shared, false}, {s.path("own"), true}} {
			for _, args := range [][]string{{"run", "--", "true"}, {"policy", "fence"}} {
				s.onHost("rm -f ../mark")
				if r := s.sandboxd(append([]string{"PATH=" + c.path + ":/usr/bin:/bin"}, env[1:]...), args...); r.code != 0 || s.exists("mark") != c.marked {
					t.Errorf("%s, %q: marked %v, exit %d: %s", c.path, args, s.exists("mark"), r.code, r.messages)
				}
			}
		}
		home := s.mkdir("h[o]*me")
		s.onHost("git clone -q --bare . '" + home + "/go/pkg/mod/cache/vcs/x' && git config extensions.worktreeConfig true")
		r := s.good(append([]string{"HOME=" + home}, env[0], "GIT_CONFIG_NOSYSTEM=1"), try+"try config 'echo x >>\"$HOME\"/go/pkg/mod/cache/vcs/x/config'\ntry cache 'echo x >\"$HOME\"/go/pkg/mod/x'", "--preset", "fence")
		if r.out != "config no\ncache yes\n" {
			t.Errorf("%q, %q", r.out, r.messages)
		}
	})
}

// What no mount can keep is said, in the helper's report and by run.
func TestFenceSaysWhatWasMade(t *testing.T) {
	eachSite(t, func(t *testing.T, s *site) {
		env := s.gitEnv()
		s.mkdir("home/go/pkg/mod/cache/vcs")
		for _, c := range []struct{ script, want string }{
			{"echo x >x; git add x; git commit -qm x", ""},
			{"git clone -q . in; git add in 2>/dev/null", "`git status` in"},
			{"mkdir -p a/b; git clone -q . a/b/in", "ws/a/b/in"},
			{"echo x >HEAD; echo ../x >commondir", "bare repository"},
			{"mkdir .git/rebase-merge; echo x evil >.git/rebase-merge/git-rebase-todo", "the rebase in progress"},
			{"git clone -q --bare . " + s.home() + "/go/pkg/mod/cache/vcs/made", "in a cache"},
			{"mkdir -p .hg; echo '[hooks]' >.hg/hgrc", "names programs that Mercurial runs"},
			{"echo >mise.toml", "a shell that trusts it runs its hooks"},
			{"mkdir tools; echo >tools/diff", "tools/diff\", which was not there: is named by git's configuration"},
			{"mkdir tools; echo >tools/x.py", "tools/x.py\", which was not there: is named by git's configuration"},
		} {
			fresh := func() {
				s.onHost("rm -rf ../ws/* ../ws/.[!.]*")
				s.repository()
				s.onHost("git config diff.x.textconv ./tools/diff; git config alias.x '!python3 tools/x.py'")
			}
			fresh()
			r := s.good(env, c.script, "--preset", "fence")
			if said := strings.Contains(r.messages, "NOT enforced  guard:"); said != (c.want != "") || !strings.Contains(r.messages, c.want) || strings.Count(r.messages, "\n") > 1 {
				t.Errorf("%s: %q", c.script, r.messages)
			}
			// In the report as well, and once.
			fresh()
			if r := s.run(env, strings.ReplaceAll(c.script, "made", "third"), "--preset", "fence", "--report"); strings.Count(r.messages, "NOT enforced  guard: ") != min(1, len(c.want)) {
				t.Errorf("the report, %s: %q", c.script, r.messages)
			}
			if r := s.run(env, "rm -rf x in a HEAD commondir; git reset -q --hard; "+strings.ReplaceAll(c.script, "made", "other"), "--preset", "fence", "--no-guard"); strings.Contains(r.messages, "guard") {
				t.Errorf("unasked, %s: %q", c.script, r.messages)
			}
		}
	})
}

// An empty workspace, into which git is to clone, holds no placeholder: there all of it
// is said.
func TestFenceSaysWhatWasMadeOfNothing(t *testing.T) {
	eachSite(t, func(t *testing.T, s *site) {
		env := s.gitEnv()
		for _, preset := range []string{"fence", "workspace"} {
			for script, want := range map[string]string{
				"mkdir .vscode; echo {} >.vscode/tasks.json": ".vscode/tasks.json",
				"echo {} >.mcp.json":                         ".mcp.json",
				"ln -s evil mise.toml":                       "mise.toml",
				"echo x >x":                                  "",
			} {
				s.onHost("rm -rf ../ws/* ../ws/.[!.]*")
				r := s.good(env, script, "--preset", preset)
				if want == "" && r.messages != "" || want != "" && !strings.Contains(r.messages, s.path("ws/"+want)+`", which was not there`) {
					t.Errorf("%s, %s: %q", preset, script, r.messages)
				}
			}
		}
	})
}

// The helper tells a broker whose policy guards a repository, and no other one: what
// was not asked for is not mentioned.
func TestFenceHelperSaysWhatWasMade(t *testing.T) {
	eachSite(t, func(t *testing.T, s *site) {
		s.gitEnv()
		asked := func(p *protocol.Policy) {
			p.Mounts = []protocol.Mount{{Path: s.path("ws/.git/config"), Access: protocol.ReadOnly, Required: true}}
			p.Protected = []string{s.path("ws/.git/hooks")}
		}
		for _, c := range []struct{ script, want string }{
			{"echo x >x; git add x; git commit -qm x", ""},
			{"git clone -q . in; git add in 2>/dev/null", "`git status` in"},
			{"echo x >HEAD; echo ../x >commondir", "bare repository"},
			{"rm .git/HEAD", ".git/HEAD"},
			{"mkdir .git/rebase-merge; echo x evil >.git/rebase-merge/git-rebase-todo", "the rebase in progress"},
		} {
			for _, ask := range []bool{true, false} {
				s.onHost("rm -rf ../ws/* ../ws/.[!.]*")
				s.repository()
				s.onHost("rmdir .git/hooks 2>/dev/null || rm -r .git/hooks")
				p := s.policy()
				if ask {
					p = s.policy(asked)
				}
				r := s.jail(p, "export HOME="+s.home()+"; "+c.script)
				var said []string
				for _, entry := range r.exit.Enforcement {
					if strings.HasPrefix(entry, "skip:guard: ") {
						said = append(said, entry)
					}
				}
				want := ask && c.want != ""
				if want != (len(said) == 1) || len(said) > 1 || want && !strings.Contains(said[0], c.want) {
					t.Errorf("%s, asked %v: %q; %s", c.script, ask, said, r.stderr)
				}
			}
		}
	})
}

// The helper looks at 8 guarded roots (the workspace is one), each of them once, and says
// of which others it does not know.
func TestFenceHelperSaysWhatItDidNotSee(t *testing.T) {
	eachSite(t, func(t *testing.T, s *site) {
		s.gitEnv()
		policy := func(guarded int) protocol.Policy {
			return s.policy(func(p *protocol.Policy) {
				for n := range 10 {
					top := fmt.Sprintf("ws/r%d", n)
					s.onHost(fmt.Sprintf("[ -d r%d ] || git init -q r%d; [ -f r%d/.git/HEAD ] || echo 'ref: refs/heads/main' >r%d/.git/HEAD", n, n, n, n))
					p.WritableRoots = append(p.WritableRoots, s.path(top), s.path(top))
					if n < guarded {
						p.Mounts = append(p.Mounts, protocol.Mount{Path: s.path(top + "/.git/config"), Access: protocol.ReadOnly, Required: true})
						p.Protected = append(p.Protected, s.path(top+"/.git/hooks"))
					}
				}
			})
		}
		for guarded, want := range map[int]string{7: "", 8: `in "` + s.path("ws/r7") + `" is not known`, 9: `in "` + s.path("ws/r7") + `" and 1 more of the kind is not known`} {
			r := s.jail(policy(guarded), "rm r0/.git/HEAD r6/.git/HEAD r7/.git/HEAD")
			var said []string
			for _, entry := range r.exit.Enforcement {
				if strings.HasPrefix(entry, "skip:guard: ") {
					said = append(said, entry)
				}
			}
			all := strings.Join(said, "\n")
			if !strings.Contains(all, "r0/.git/HEAD") || !strings.Contains(all, "r6/.git/HEAD") || !strings.Contains(all, want) ||
				want == "" && strings.Contains(all, "not known") {
				t.Errorf("%d guarded roots: %s; %s", guarded, all, r.stderr)
			}
		}
	})
}
