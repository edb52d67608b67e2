//go:build linux

package e2e

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sandboxd/internal/testenv"
)

// client is one of testdata/clients, copied to where every user can read it.
type client struct {
	dir  string
	argv []string // runs its check
}

// clients makes them. Each is two files: the client, which users copy, and its check.
var clients = map[string]func(t *testing.T) client{
	"python": func(t *testing.T) client {
		dir := copied(t, "python")
		return client{dir, []string{testenv.Tool(t, "python3"), "-B", filepath.Join(dir, "check.py")}}
	},
	"node": func(t *testing.T) client {
		dir := copied(t, "node")
		installed(t, dir)
		return client{dir, []string{testenv.Tool(t, "node"), filepath.Join(dir, "check.mjs")}}
	},
}

func copied(t *testing.T, name string) string {
	t.Helper()
	dir := testenv.TempDir(t, testenv.Me())
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(testenv.Root(t), "testdata", "clients", name))); err != nil {
		t.Fatal(err)
	}
	return dir
}

// installed fetches what package.json names; scripts/setup put it into npm's cache.
func installed(t *testing.T, dir string) {
	t.Helper()
	cmd := exec.Command(testenv.Tool(t, "npm"), "install", "--prefer-offline", "--no-audit", "--no-fund", "--no-package-lock", "--ignore-scripts")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("cannot install the node client's library: %v\n%s", err, out)
	}
}

// TestClients: another language's own msgpack library and one file are enough to speak
// the protocol, by the golden fixtures and to the real helper.
func TestClients(t *testing.T) {
	fixtures := filepath.Join(testenv.Root(t), "protocol", "fixtures")
	for name, prepare := range clients {
		t.Run(name, func(t *testing.T) {
			c := prepare(t)
			t.Run("fixtures", func(t *testing.T) {
				out, err := c.check(t, testenv.Me(), "fixtures", fixtures)
				var got map[string]int
				if err != nil || json.Unmarshal([]byte(out), &got) != nil {
					t.Fatalf("%v\n%s", err, out)
				}
				for what, want := range casesFor(t, fixtures) {
					if got[what] != want || want == 0 {
						t.Errorf("%d cases were %s, and the manifest has %d", got[what], what, want)
					}
				}
			})
			t.Run("a wrong fixture is seen", func(t *testing.T) {
				for _, change := range [][2]string{{`"peer": "sandboxd/1.0"`, `"peer": "sandboxd/1.1"`}, {"frame/bad-duplicate-key.bin", "frame/cancel.bin"}} {
					if out, err := c.check(t, testenv.Me(), "fixtures", changed(t, fixtures, change[0], change[1])); err == nil {
						t.Errorf("passed with %s for %s: %s", change[1], change[0], out)
					}
				}
			})
			testenv.EachUser(t, func(t *testing.T, u testenv.User) {
				dir := testenv.TempDir(t, u)
				write(t, filepath.Join(dir, "secret"), "s3cret")
				if out, err := c.check(t, u, "helper", testenv.Binary(t), dir); err != nil || out != "ok\n" {
					t.Fatalf("%v\n%s", err, out)
				}
				if b, err := os.ReadFile(filepath.Join(dir, "made")); err != nil || string(b) != "in\n" {
					t.Errorf("the command's file: %q, %v", b, err)
				}
				if _, err := os.Stat("/etc/made"); !os.IsNotExist(err) {
					t.Errorf("/etc/made: %v", err)
				}
			})
		})
	}
}

func (c client) check(t *testing.T, u testenv.User, args ...string) (string, error) {
	cmd := exec.Command(c.argv[0], append(c.argv[1:len(c.argv):len(c.argv)], args...)...)
	cmd.Dir = c.dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := testenv.As(t, cmd, u).Output()
	if err != nil {
		return stderr.String(), err
	}
	return string(out), nil
}

// casesFor counts what a client has to do, from the manifest.
func casesFor(t *testing.T, fixtures string) map[string]int {
	t.Helper()
	var m struct {
		Cases []struct {
			What      string
			Canonical bool
			Error     *struct{ Code string }
		}
	}
	b, err := os.ReadFile(filepath.Join(fixtures, "manifest.json"))
	if err == nil {
		err = json.Unmarshal(b, &m)
	}
	if err != nil {
		t.Fatal(err)
	}
	n := map[string]int{}
	for _, c := range m.Cases {
		switch {
		case c.Error == nil && c.Canonical:
			n["encoded"]++
			fallthrough
		case c.Error == nil:
			if c.What == "frame" {
				n["decoded"]++
			}
		case c.What == "frame" && c.Error.Code != "bad_policy":
			n["rejected"]++
		}
	}
	return n
}

// changed is a copy of the fixtures with something else in their manifest.
func changed(t *testing.T, fixtures, from, to string) string {
	t.Helper()
	dir := t.TempDir()
	for _, sub := range []string{"frame", "policy", "limits"} {
		if err := os.Symlink(filepath.Join(fixtures, sub), filepath.Join(dir, sub)); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(filepath.Join(fixtures, "manifest.json"))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Count(string(b), from) != 1 {
		t.Fatalf("the manifest has %d of %q", strings.Count(string(b), from), from)
	}
	write(t, filepath.Join(dir, "manifest.json"), strings.Replace(string(b), from, to, 1))
	return dir
}

// TestClientsAreShort: a user copies and reads them.
func TestClientsAreShort(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(testenv.Root(t), "testdata", "clients", "*", "*.*"))
	if err != nil || len(files) < 5 {
		t.Fatalf("found %q, %v", files, err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if n := bytes.Count(b, []byte("\n")); err != nil || n >= 150 {
			t.Errorf("%s has %d lines, %v", filepath.Base(f), n, err)
		}
	}
}
