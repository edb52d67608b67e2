//go:build linux

package e2e

import (
	"encoding/base64"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"sandboxd/internal/testenv"
	"sandboxd/protocol"
)

const published = "[user]\n\tuseConfigOnly = true\n\tname = Ann\n"

// publish runs the operation as the site's user and gives its exit code.
func (s *site) publish(p protocol.Policy, workspace, entries string) (int, string) {
	s.t.Helper()
	cmd := exec.Command(testenv.Binary(s.t), "--publish-git-identity", base64.StdEncoding.EncodeToString(p.Append(nil)), workspace, entries)
	testenv.As(s.t, cmd, s.u)
	out, err := cmd.CombinedOutput()
	var ee *exec.ExitError
	if err != nil && !errors.As(err, &ee) {
		s.t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

const annOnly = `[["user.name","Ann"]]`

func TestFenceIdentityIsPublished(t *testing.T) {
	eachSite(t, func(t *testing.T, s *site) {
		s.mkdir("ws/.sandboxd/home")
		file := "ws/.sandboxd/home/gitconfig"
		if code, out := s.publish(s.policy(), s.ws, `[["user.name","Bob"],["user.name","Ann"]]`); code != 0 || out != "" {
			t.Fatalf("exit %d: %s", code, out)
		}
		info, err := os.Lstat(s.path(file))
		if err != nil || info.Mode() != 0o600 || s.read(file) != published {
			t.Errorf("%v, %v, %q", info, err, s.read(file))
		}
		// A command reads it.
		p := s.policy(func(p *protocol.Policy) { p.EnvAllow = append(p.EnvAllow, "GIT_CONFIG_GLOBAL") })
		s.expect(s.jail(p, "export GIT_CONFIG_GLOBAL="+s.path(file)+"; git config user.name"), "Ann\n")

		// A link and a hard link are replaced as entries.
		s.write("victim", "untouched\n")
		for _, plant := range []string{"ln -s", "ln"} {
			s.onHost("rm -f .sandboxd/home/gitconfig; " + plant + " ../victim .sandboxd/home/gitconfig")
			if plant == "ln -s" {
				s.onHost("rm .sandboxd/home/gitconfig; ln -s " + s.path("victim") + " .sandboxd/home/gitconfig")
			}
			if code, out := s.publish(s.policy(), s.ws, annOnly); code != 0 {
				t.Errorf("over a planted entry: %s", out)
			}
			if s.read("victim") != "untouched\n" || s.read(file) != published {
				t.Errorf("%s: victim %q, file %q", plant, s.read("victim"), s.read(file))
			}
		}
		if got := s.onHost("ls -A .sandboxd/home"); got != "gitconfig\n" {
			t.Errorf("left behind: %q", got)
		}
	})
}

func TestFenceIdentityIsRefused(t *testing.T) {
	eachSite(t, func(t *testing.T, s *site) {
		ro := func(rel string) func(*protocol.Policy) {
			return func(p *protocol.Policy) {
				p.Mounts = append(p.Mounts, protocol.Mount{Path: s.path(rel), Access: protocol.ReadOnly, Required: true})
			}
		}
		none := func(p *protocol.Policy) { p.WritableRoots = nil }
		cases := []struct {
			name, prepare, want string
			change              func(*protocol.Policy)
		}{
			{"missing parents", "rm -rf .sandboxd", "does not exist", nil},
			{"missing parent", "rm -rf .sandboxd/home", "does not exist", nil},
			{"a file as parent", "rm -rf .sandboxd/home; echo x >.sandboxd/home", "not a directory", nil},
			{"a link as parent", "rm -rf .sandboxd/home; mkdir elsewhere; ln -s ../elsewhere .sandboxd/home", "link", nil},
			{"a link as grandparent", "mv .sandboxd elsewhere; ln -s elsewhere .sandboxd", "link", nil},
			{"a link out of the workspace", "rm -rf .sandboxd/home; ln -s ../../other .sandboxd/home", "link", nil},
			{"a directory as destination", "mkdir .sandboxd/home/gitconfig", "cannot write", nil},
			{"nothing granted", "", "(none)", none},
			{"only readable", "", "(read-only)", func(p *protocol.Policy) { none(p); p.ReadableRoots = []string{s.ws} }},
			{"a read-only mount", "", "(read-only)", ro("ws/.sandboxd/home")},
			{"a read-only mount of the file", ": >.sandboxd/home/gitconfig", "(read-only)", ro("ws/.sandboxd/home/gitconfig")},
			{"protected", "", "(masked)", s.protect("ws/.sandboxd")},
			{"the file is protected", "", "(masked)", s.protect("ws/.sandboxd/home/gitconfig")},
			{"the file is protected and a link", "ln -s " + s.path("ws/x") + " .sandboxd/home/gitconfig", "link", s.protect("ws/.sandboxd/home/gitconfig")},
			{"too long", "", "fsize_bytes", func(p *protocol.Policy) { p.Limits.FsizeBytes = 10 }},
		}
		for _, c := range cases {
			s.onHost("rm -rf .sandboxd elsewhere ../other; mkdir -p .sandboxd/home ../other; " + c.prepare)
			p := s.policy()
			if c.change != nil {
				c.change(&p)
			}
			before := s.tree()
			code, out := s.publish(p, s.ws, annOnly)
			if code != 125 || !strings.Contains(out, c.want) || strings.Contains(out, "Ann") {
				t.Errorf("%s: exit %d, %q, want %q", c.name, code, out, c.want)
			}
			s.unchanged(before)
		}
		if code, out := s.publish(s.policy(), s.ws, `[["user.name","Ann"],[]]`); code != 125 || strings.Contains(out, "Ann") {
			t.Errorf("bad entries: exit %d, %q", code, out)
		}
	})
	// The scratch of a jail is no place of the host's.
	s := newSite(t, testenv.Me())
	dir, err := os.MkdirTemp("/tmp", "sandboxd-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.MkdirAll(dir+"/.sandboxd/home", 0o700); err != nil {
		t.Fatal(err)
	}
	if code, out := s.publish(s.policy(), dir, annOnly); code != 125 || !strings.Contains(out, "(private)") {
		t.Errorf("below a private scratch: exit %d, %q", code, out)
	}
	p := s.policy(func(p *protocol.Policy) { p.Scratch = "/tmp" })
	if code, out := s.publish(p, dir, annOnly); code != 0 {
		t.Errorf("below a scratch of the host: exit %d, %q", code, out)
	}
}

// Readers see one whole file or the other while the operation is repeated.
func TestFenceIdentityReadersSeeWholeFiles(t *testing.T) {
	s := newSite(t, testenv.Me())
	s.mkdir("ws/.sandboxd/home")
	file := s.path("ws/.sandboxd/home/gitconfig")
	long := strings.Repeat("long name ", 3000) + "x"
	want := map[string]bool{published: true, strings.Replace(published, "Ann", long, 1): true}
	s.publish(s.policy(), s.ws, annOnly)
	stop, bad := make(chan bool), make(chan string, 1)
	seen := map[string]bool{}
	go func() {
		defer close(bad)
		for {
			select {
			case <-stop:
				return
			default:
			}
			b, err := os.ReadFile(file)
			if seen[string(b)] = true; err != nil || !want[string(b)] {
				bad <- string(b[:min(len(b), 200)])
				return
			}
		}
	}()
	for range 20 {
		for _, name := range []string{long, "Ann"} {
			if code, out := s.publish(s.policy(), s.ws, `[["user.name","`+name+`"]]`); code != 0 {
				t.Fatalf("exit %d: %s", code, out)
			}
		}
	}
	close(stop)
	if text, ok := <-bad; ok {
		t.Errorf("a reader saw %q", text)
	}
	if len(seen) != 2 {
		t.Errorf("the reader saw %d versions, expected both", len(seen))
	}
}

// A command commits as the user would: as the repository says, else as the user's
// configuration says for this place, else as it says for all.
func TestFenceIdentityOfACommit(t *testing.T) {
	eachSite(t, func(t *testing.T, s *site) {
		env := s.gitEnv()
		s.repository()
		const commit = "git commit -q --allow-empty -m x && git log -1 --format='%an <%ae> %cn <%ce>'"
		for _, c := range []struct{ name, prepare, want string }{
			{"the user's", "git config --unset user.name; git config --unset user.email", "A <a@example.org> A <a@example.org>\n"},
			{"included for this place", "git config --global includeIf.gitdir:" + s.ws + "/.path ~/inc; printf '[user]\n\temail = w@example.org' >~/inc", "A <w@example.org> A <w@example.org>\n"},
			{"the repository's", "git config user.email r@example.org", "A <r@example.org> A <r@example.org>\n"},
			{"the work tree's", "git config extensions.worktreeConfig true; git config --worktree user.name W", "W <r@example.org> W <r@example.org>\n"},
		} {
			s.onHost(c.prepare)
			if host := s.onHost(commit); host != c.want {
				t.Errorf("%s, on the host: %q", c.name, host)
			}
			for _, preset := range []string{"workspace", "fence"} {
				if r := s.good(env, commit, "--preset", preset); r.out != c.want {
					t.Errorf("%s, %s: %q, %q", c.name, preset, r.out, r.messages)
				}
			}
		}
	})
}
