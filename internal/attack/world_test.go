//go:build linux

package attack

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// world is what an attack knows: the layout below Base, and the victim's ways in.
//
//	ws   writable root       ws/NAME/.env, .secret/key, deep/a/.netrc  protected
//	                         ws/NAME/later, gone/later                 protected, missing
//	ro   readable root       ro/NAME/file
//	out  not in the policy   out/NAME/secret
//	bin  this program
type world struct {
	Base, Nonce, Secret string
	Jailed              bool
	Namespaces          [2]string // of the test: see namespaces
	Victim              target

	name string // of the attack
}

// target is a process of the same user outside the jail, and what it offers.
type target struct {
	PID                int
	Address            uint64 // of the secret in its memory
	TCP, UDP           int
	Abstract, Datagram string
	Shm, Msg, Sem      int // System V keys
	Queue, Memory, PTY string
}

func (w *world) called(name string) *world {
	c := *w
	c.name = name
	return &c
}

func (w *world) dir(kind string) string { return filepath.Join(w.Base, kind, safe(w.name)) }

func safe(name string) string {
	return strings.Map(func(r rune) rune {
		if r == ' ' || r == '/' || r == ',' {
			return '-'
		}
		return r
	}, name)
}

func (w *world) ws(rel string) string  { return filepath.Join(w.dir("ws"), rel) }
func (w *world) ro(rel string) string  { return filepath.Join(w.dir("ro"), rel) }
func (w *world) out(rel string) string { return filepath.Join(w.dir("out"), rel) }
func (w *world) env() string           { return w.ws(".env") }
func (w *world) secret() string        { return w.ws(".secret") }
func (w *world) key() string           { return w.ws(".secret/key") }
func (w *world) netrc() string         { return w.ws("deep/a/.netrc") }
func (w *world) later() string         { return w.ws("later") }

// protected lists what the policy protects for an attack: what it is after, for each
// mask is a mount.
func (w *world) protected() []string {
	switch kind, _, _ := strings.Cut(w.name, ": "); kind {
	case "protected":
		return []string{w.env(), w.secret(), w.netrc()}
	case "missing":
		return []string{w.later(), w.ws("gone/later")}
	case "mount", "user namespace":
		return []string{w.secret()}
	}
	return nil
}

// build makes the attack's files.
func (w *world) build() error {
	for path, text := range map[string]string{
		w.env(): w.Secret, w.key(): w.Secret, w.netrc(): w.Secret, w.ws("own"): "mine",
		w.ws("mine/a/.netrc"): "mine", w.ro("file"): "readable", w.out("secret"): w.Secret,
		w.out("program"): "#!/bin/sh\nexit 0\n",
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			return err
		}
	}
	_ = syscall.Setxattr(w.env(), "user.note", []byte(w.Secret), 0) // not every file system has them
	return os.MkdirAll(w.out("dir"), 0o755)
}

// reads succeeds where the file shows the secret.
func (w *world) reads(path string) error {
	b, err := os.ReadFile(path)
	if err == nil && !strings.Contains(string(b), w.Secret) {
		err = errMissed
	}
	return err
}

func (w *world) save(path string) error {
	b, err := json.Marshal(w)
	if err != nil {
		return err
	}
	return os.WriteFile(path, b, 0o644)
}

func load(path string) (*world, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	w := &world{}
	return w, json.Unmarshal(b, w)
}

// put writes to a path without reading it.
func put(path string, flags int) error {
	f, err := os.OpenFile(path, os.O_WRONLY|flags, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString("planted")
	if e := f.Close(); err == nil {
		err = e
	}
	return err
}
