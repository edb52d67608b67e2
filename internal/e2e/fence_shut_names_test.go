//go:build linux

package e2e

import (
	"strings"
	"testing"
)

// pointers are ways to have the guard not read what names the places that git runs, rather
// than the places. refused says that the second command of an ordinary user does not run.
func (s *site) pointers() []hidden {
	const hook = "mkdir -p .husky; git config core.hookspath .husky; printf '#!/bin/sh\\n' >.husky/pre-commit; chmod +x .husky/pre-commit"
	const attack, trigger = "evil .husky/pre-commit", "echo x >>f; git commit -qam x"
	const tool = "mkdir -p tools conf; printf '#!/bin/sh\\n' >tools/fs; chmod +x tools/fs; printf '[core]\\n\\tfsmonitor = tools/fs\\n' >conf/inc"
	home := s.home()
	return []hidden{
		{"its git directory", hook, "chmod 0 .git", attack, trigger, nil},
		{"a git directory elsewhere, that does not name it", "mv .git ../gd; echo gitdir: ../gd >.git; " + hook, "true", attack, trigger, nil},
		{"an included file", tool + "; git config include.path ../conf/inc", "chmod 0 conf", "evil tools/fs", "git status", nil},
		{"an included file of the user's", tool + "; git config --global include.path $W/conf/inc", "chmod 0600 conf", "evil tools/fs", "git status", nil},
		{"hooks that are links", "mkdir -p tools/hooks scripts; printf '#!/bin/sh\\n' >scripts/x; chmod +x scripts/x; ln -s ../../scripts/x tools/hooks/pre-commit; git config core.hookspath tools/hooks", "chmod 0 tools", "evil scripts/x", trigger, nil},
		{"a submodule's git directory", addSub + "cd sub; " + hook + "; cd ..; git config submodule.sub.ignore none", "chmod 0 .git/modules/sub", "cd sub; " + attack, "cd sub; git checkout -q -B main; " + strings.ReplaceAll(trigger, "f;", "l;"), nil},
		{"a repository inside", "git clone -q . nested; cd nested; " + hook, "chmod 0 nested/.git", "cd nested; " + attack, "cd nested; " + trigger, nil},
		{"a repository inside, with its git directory elsewhere", "git clone -q . nested; mv nested/.git ../gd; echo gitdir: ../../gd >nested/.git; cd nested; " + hook, "true", "cd nested; " + attack, "cd nested; " + trigger, []string{"--protect", home + "/none"}},
	}
}

// What a command keeps from being read names nothing that the next one can write.
func TestFenceShutNames(t *testing.T) {
	eachSite(t, func(t *testing.T, s *site) {
		env := s.gitEnv()
		for _, h := range s.pointers() {
			try := func(more ...string) (marked bool, first, second fenced) {
				s.onHost("cd ..; chmod -R u+rwX ws gd 2>/dev/null || true; rm -rf mark gd lib ws/* ws/.[!.]*; mkdir lib")
				s.gitEnv()
				s.repository()
				s.onHost(s.evil() + h.prepare)
				args := append(append([]string{"--preset", "fence"}, h.args...), more...)
				first = s.good(env, h.hide, args...)
				second = s.run(env, s.evil()+h.attack, args...)
				s.onHost("set +e; chmod -R u+rwX .; " + s.evil() + "{ " + h.trigger + "; } >/dev/null 2>&1; true")
				return s.exists("mark"), first, second
			}
			marked, first, second := try()
			if marked {
				t.Errorf("%s: %q, then exit %d: %q", h.name, first.messages, second.code, second.messages)
			}
			hidden := h.hide != "true" && s.u.UID != 0
			nested := h.name == "a repository inside"
			if refused := second.code == 125 && strings.Contains(second.messages, "cannot look for what git runs in"); hidden && !nested && !refused {
				t.Errorf("%s: exit %d: %q", h.name, second.code, second.messages)
			}
			if hidden && nested && !strings.Contains(second.messages, "makes git run of other places is not guarded") {
				t.Errorf("%s: exit %d: %q", h.name, second.code, second.messages)
			}
			if marked, _, r := try("--no-guard"); !marked {
				t.Errorf("the control of %s marks nothing: exit %d: %s%s", h.name, r.code, r.out, r.messages)
			}
		}
	})
}
