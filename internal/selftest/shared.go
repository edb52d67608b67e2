package selftest

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"

	"sandboxd/internal/selftest/witness"
)

const (
	// binName is the copy of this program in the fixture: the jail's view need not
	// hold the directory it was started from.
	binName = "sandboxd"
	// baitName is a variable that the broker and the helper have and no policy allows.
	baitName = "SANDBOXD_SELFTEST_BAIT"
	greeting = "hello from outside" // what every listener says
	// prefix begins the name of whatever is made outside the fixture's own directory.
	prefix = "sandboxd-selftest-"
	// needed is the room for copies of this program and what the probes write, in bytes.
	needed = 64 << 20
)

// shared is what all lanes use: the fixture's directory, and baits outside the jail.
type shared struct {
	base, bin string
	bait      string // value of baitName, and argument of the bait process
	tcp       string // address of a listener on the loopback
	agent     string // a socket where SSH_AUTH_SOCK says that the user's agent listens
	baitPID   int
	leaked    int      // a descriptor without close-on-exec
	leash     *os.File // standard input of what runs outside the jail, see witness.Leash

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
	base, release, err := claim(parent)
	if err != nil {
		return nil, err
	}
	sh := &shared{base: base, bin: filepath.Join(base, "bin"), bait: "bait-" + token(), leaked: -1}
	sh.onClose(release)
	leash, hand, err := os.Pipe()
	if err != nil {
		sh.close()
		return nil, fmt.Errorf("cannot make a fixture: %w", err)
	}
	sh.leash = leash
	sh.onClose(func() { leash.Close(); hand.Close() })
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
	sh.agent = filepath.Join(sh.base, "agent", "s")
	if err := sh.listenAt(sh.agent); err != nil {
		return err
	}
	sh.leak(filepath.Join(sh.base, "leaked"))
	return sh.startBait(bin)
}

// startBait starts a process outside the jail that one inside must not see.
func (sh *shared) startBait(bin string) error {
	cmd := exec.Command(bin, witness.Prefix+"stay", sh.bait)
	sh.tie(cmd, baitName+"="+sh.bait)
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

// tie lets cmd end with this process, however it ends.
func (sh *shared) tie(cmd *exec.Cmd, variables ...string) {
	cmd.Stdin = sh.leash
	cmd.Env = append(append(os.Environ(), witness.Leash+"=1"), variables...)
}

// full says why nothing more can be written into the fixture, or "".
func (sh *shared) full() string {
	path := filepath.Join(sh.base, "room-"+token())
	err := os.WriteFile(path, make([]byte, 256<<10), 0o600)
	if err != nil {
		err = fmt.Errorf("nothing can be written to the fixture: %w", err)
	}
	os.Remove(path)
	if err != nil {
		return err.Error()
	}
	return ""
}

// listenAt greets whoever connects to a socket of the file system.
func (sh *shared) listenAt(path string) error {
	name, done, err := short(path)
	if err != nil {
		return fmt.Errorf("cannot listen for the fixture: %w", err)
	}
	defer done()
	_, err = sh.listen("unix", name)
	return err
}

// listen greets whoever connects, until the fixture is closed.
func (sh *shared) listen(network, address string) (string, error) {
	ln, err := net.Listen(network, address)
	if err != nil {
		return "", fmt.Errorf("cannot listen for the fixture: %w", err)
	}
	if unix, ok := ln.(*net.UnixListener); ok {
		unix.SetUnlinkOnClose(false) // its name may be another's by then, see short
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

// copyFile copies a program. A child that is forked meanwhile has the copy open for
// writing until its own execve, and the copy cannot be executed so long (ETXTBSY,
// execve(2)): so there is none.
func copyFile(from, to string) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
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
