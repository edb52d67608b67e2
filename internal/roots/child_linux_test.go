package roots

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"sandboxd/internal/testenv"

	"sandboxd/internal/host"
	"sandboxd/internal/plan"
)

// The test binary is also the second process of these tests.
const roleVar, argVar = "ROOTS_TEST_ROLE", "ROOTS_TEST_ARG"

func TestMain(m *testing.M) {
	switch os.Getenv(roleVar) {
	case "":
		os.Exit(m.Run())
	case "place":
		childPlace(os.Getenv(argVar))
	case "mount":
		childMount(strings.Split(os.Getenv(argVar), ":"))
	}
}

// childPlace is another helper: it places, waits for a line, and releases.
func childPlace(path string) {
	p, r := placed(path)
	fmt.Println("ready")
	bufio.NewReader(os.Stdin).ReadString('\n')
	if err := p.Release(); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	r.Close()
	os.Exit(0)
}

func placed(path string) (*Placeholders, *Reached) {
	r, err := Survey([]string{path}, Writability{Narrow: []string{path}})
	if err == nil {
		var p *Placeholders
		if p, err = Place([]plan.Op{opFor(path)}, r); err == nil {
			return p, r
		}
	}
	fmt.Println(err)
	os.Exit(1)
	return nil, nil
}

func opFor(path string) plan.Op {
	op := plan.Op{Path: path, Class: plan.MaskDir, Perms: 0o555, Placeholder: true, Origin: plan.Origin{List: "protected", Path: path}}
	switch filepath.Base(path) {
	case "commondir":
		op.Class, op.Content = plan.MaskFile, "."
	case ".env":
		op.Class = plan.MaskFile
	}
	return op
}

// childMount is a jail: in its own mount namespace it masks every path.
func childMount(paths []string) {
	for _, path := range paths {
		if err := unix.Mount("none", path, "tmpfs", 0, "size=4k"); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
	fmt.Println("ready")
	io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}

type child struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	out   *bufio.Reader
}

// start runs a role and waits until it is ready.
func start(t *testing.T, role, arg string) *child {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), roleVar+"="+role, argVar+"="+arg)
	if role == "mount" {
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
		}
	}
	stdin, err := cmd.StdinPipe()
	must(t, err)
	stdout, err := cmd.StdoutPipe()
	must(t, err)
	if err := cmd.Start(); err != nil {
		testenv.Skip(t, "root", fmt.Sprintf("cannot start the %s process: %v", role, err))
	}
	c := &child{cmd, stdin, bufio.NewReader(stdout)}
	t.Cleanup(func() { c.kill() })
	if line, _ := c.out.ReadString('\n'); line != "ready\n" {
		t.Fatalf("%s: %q", role, line)
	}
	return c
}

func (c *child) kill() {
	c.cmd.Process.Kill()
	c.cmd.Wait()
}

func (c *child) end(t *testing.T) {
	t.Helper()
	c.stdin.Write([]byte("\n"))
	c.stdin.Close()
	if err := c.cmd.Wait(); err != nil {
		t.Errorf("the other process: %v", err)
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// place surveys and places one path.
func placeOne(t *testing.T, path string) *Placeholders {
	t.Helper()
	r, err := Survey([]string{path}, Writability{Narrow: []string{path}})
	must(t, err)
	t.Cleanup(func() { r.Close() })
	if kind := r.Layout().ResolveAbsent(path, host.AnyPlaceholder).Node.Kind; kind != host.Missing {
		t.Fatalf("%s: kind %d, a placeholder must not be taken for something", path, kind)
	}
	p, err := Place([]plan.Op{opFor(path), {Path: path + "x", Class: plan.MaskDir}}, r)
	must(t, err)
	if _, ok := p.ID(path); !ok || len(p.list) != 1 {
		t.Fatalf("placed %d", len(p.list))
	}
	return p
}
