package selftest

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"sandboxd/protocol"
)

// site is the fixture of one run: every run has its own, so that what a control
// did to its files shows nowhere else.
//
//	work/       the writable root; work/effect is the allowed effect
//	out/        outside the roots; out/file holds the secret
type site struct {
	dir, bin      string
	nonce, secret string
}

func newSite(dir, bin string) (*site, error) {
	s := &site{dir: dir, bin: bin, nonce: token(), secret: "secret-" + token()}
	for _, sub := range []string{"work", "out/dir"} {
		if err := os.MkdirAll(s.path(sub), 0o755); err != nil {
			return nil, fmt.Errorf("cannot make a fixture: %w", err)
		}
	}
	return s, s.file("out/file", s.secret)
}

func token() string {
	b := make([]byte, 12)
	rand.Read(b) // never fails, see crypto/rand
	return hex.EncodeToString(b)
}

func (s *site) path(rel string) string { return filepath.Join(s.dir, filepath.FromSlash(rel)) }
func (s *site) work() string           { return s.path("work") }
func (s *site) effect() string         { return s.path("work/effect") }
func (s *site) probe() string          { return filepath.Join(s.bin, binName) }

func (s *site) file(rel, text string) error {
	if err := os.MkdirAll(filepath.Dir(s.path(rel)), 0o755); err != nil {
		return fmt.Errorf("cannot make a fixture: %w", err)
	}
	if err := os.WriteFile(s.path(rel), []byte(text), 0o644); err != nil {
		return fmt.Errorf("cannot make a fixture: %w", err)
	}
	return nil
}

// done says whether the allowed effect can be seen from outside.
func (s *site) done() bool {
	b, err := os.ReadFile(s.effect())
	return err == nil && string(b) == s.nonce
}

// policy is the strict one that every probe starts from.
func (s *site) policy() protocol.Policy {
	return protocol.Policy{
		WritableRoots: []string{s.work()},
		ReadableRoots: []string{s.bin},
		Network:       protocol.Network{Mode: protocol.NetOff},
		Scratch:       protocol.ScratchTmpfs,
		EnvAllow:      []string{"PATH", "HOME", "LANG"},
	}
}

// fence is the shape of the fence preset: everything readable, the network as it
// is, writes bounded.
func (s *site) fence() protocol.Policy {
	p := s.policy()
	p.ReadableRoots = []string{"/"}
	p.Network.Mode = protocol.NetFull
	p.Scratch = s.work()
	return p
}

// snapshot is everything below a path as text, "absent" where there is nothing. A
// directory's own times are left out: a mask may touch them.
func snapshot(path string) string {
	var b strings.Builder
	filepath.WalkDir(path, func(at string, d fs.DirEntry, err error) error {
		if err != nil {
			fmt.Fprintf(&b, "%s: absent\n", at)
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return nil
		}
		text := ""
		if info.Mode().IsRegular() {
			content, _ := os.ReadFile(at)
			text = hex.EncodeToString(content)
		}
		fmt.Fprintf(&b, "%s %s %s\n", at, info.Mode(), text)
		return nil
	})
	return b.String()
}
