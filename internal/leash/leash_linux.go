package leash

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// Role is the argument that makes this program that process. Nobody types it.
const Role = "--leash"

// Leash is the helper's side.
type Leash struct {
	cmd  *exec.Cmd
	life *os.File // its end is the helper's
	held *os.File // what is inherited
}

// Start starts the process.
func Start() (*Leash, error) {
	var files [4]*os.File
	var err error
	for i := 0; i < len(files) && err == nil; i += 2 {
		files[i], files[i+1], err = os.Pipe()
	}
	l := &Leash{life: files[1], held: files[3]}
	if err == nil {
		l.cmd = exec.Command("/proc/self/exe", Role)
		l.cmd.Args[0], l.cmd.Env, l.cmd.Dir = "sandboxd", []string{}, "/"
		l.cmd.ExtraFiles = []*os.File{files[0], files[2]}
		// What a terminal sends to the helper's group is not meant for it.
		l.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		err = l.cmd.Start()
	}
	files[0].Close()
	files[2].Close()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("cannot start the process that cleans up after a killed helper: %w; raise the limit of processes or descriptors", err), files[1].Close(), files[3].Close())
	}
	return l, nil
}

// File is what a scaffolding inherits, as any descriptor that it does not know.
func (l *Leash) File() *os.File { return l.held }

// Pid is the process.
func (l *Leash) Pid() int { return l.cmd.Process.Pid }

// endPatience is how long the process may take: it has nothing to do, unless something
// of a jail was left.
const endPatience = 5 * time.Second

// End is that of a helper which has cleaned up by itself.
func (l *Leash) End() {
	l.held.Close() // first: who holds it at the helper's end is killed
	l.life.Close()
	late := time.AfterFunc(endPatience, func() { _ = l.cmd.Process.Kill() })
	defer late.Stop()
	_ = l.cmd.Wait()
}
