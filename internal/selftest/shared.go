package selftest

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"

	"sandboxd/internal/selftest/witness"
)

const (
	// binName is the copy of this program in the fixture: the jail's view need not
	// hold the directory it was started from.
	binName = "sandboxd"
	// baitName is a variable that the broker and the helper have and no policy allows.
	baitName = "SANDBOXD_SELFTEST_BAIT"
	greeting = "hello from outside" // what every listener says
)

// shared is what all lanes use: the fixture's directory, and baits outside the jail.
type shared struct {
	base, bin string
	bait      string // value of baitName, and argument of the bait process
	tcp       string // address of a listener on the loopback
	agent     string // a socket where SSH_AUTH_SOCK says that the user's agent listens
	baitPID   int
	leaked    int // a descriptor without close-on-exec

	mu      sync.Mutex
	closers []func()
}

func (sh *shared) onClose(f func()) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.closers = append(sh.closers, f)
}

func (sh *shared) close() {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	for i := len(sh.closers) - 1; i >= 0; i-- {
		sh.closers[i]()
	}
	sh.closers = nil
}

// newShared makes the fixture below parent, which is resolved already.
func newShared(parent, executable string) (*shared, error) {
	base, err := os.MkdirTemp(parent, "sandboxd-selftest-")
	if err != nil {
		return nil, fmt.Errorf("cannot make a fixture: %w", err)
	}
	sh := &shared{base: base, bin: filepath.Join(base, "bin"), bait: "bait-" + token(), leaked: -1}
	sh.onClose(func() { os.RemoveAll(base) })
	if err := sh.build(executable); err != nil {
		sh.close()
		return nil, err
	}
	return sh, nil
}

func (sh *shared) build(executable string) error {
	for _, dir := range []string{"bin", "agent"} {
		if err := os.Mkdir(filepath.Join(sh.base, dir), 0o755); err != nil {
			return fmt.Errorf("cannot make a fixture: %w", err)
		}
	}
	bin := filepath.Join(sh.bin, binName)
	if err := copyFile(executable, bin); err != nil {
		return fmt.Errorf("cannot copy this program into the fixture: %w", err)
	}
	if err := exec.Command(bin, "--version").Run(); err != nil {
		return fmt.Errorf("a program in %q cannot be executed: %w", sh.bin, err)
	}
	address, err := sh.listen("tcp", "127.0.0.1:0")
	if err != nil {
		address = "" // the probes that want it say so in their controls
	}
	sh.tcp = address
	if sh.agent, err = sh.listen("unix", filepath.Join(sh.base, "agent", "s")); err != nil {
		return err
	}
	sh.leak(filepath.Join(sh.base, "leaked"))
	return sh.startBait(bin)
}

// startBait starts a process outside the jail that one inside must not see.
func (sh *shared) startBait(bin string) error {
	cmd := exec.Command(bin, witness.Prefix+"stay", sh.bait)
	cmd.Env = append(os.Environ(), baitName+"="+sh.bait)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("cannot start a process for the fixture: %w", err)
	}
	sh.baitPID = cmd.Process.Pid
	sh.onClose(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	return nil
}

// listen greets whoever connects, until the fixture is closed.
func (sh *shared) listen(network, address string) (string, error) {
	ln, err := net.Listen(network, address)
	if err != nil {
		return "", fmt.Errorf("cannot listen for the fixture: %w", err)
	}
	sh.onClose(func() { ln.Close() })
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			io.WriteString(c, greeting)
			c.Close()
		}
	}()
	return ln.Addr().String(), nil
}

func copyFile(from, to string) error {
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
	if err != nil {
		return err
	}
	if _, err = io.Copy(dst, src); err == nil {
		err = dst.Chmod(0o755)
	}
	if e := dst.Close(); err == nil {
		err = e
	}
	return err
}
