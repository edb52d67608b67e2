//go:build linux

package attack

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// atOnce is how many attacks run beside each other in one execution.
const atOnce = 4

// limit bounds one attack that hangs; none waits for it.
const limit = 40 * time.Second

// batch runs every named attack in a process of its own, since an attack may change or
// end its process, and prints one line for each: NAME, "in" or "out", why.
func batch(args []string) int {
	w, err := load(args[0])
	if err != nil {
		fmt.Println("cannot load the world:", err)
		return 3
	}
	if mine := namespaces(); w.Jailed && (mine[0] == w.Namespaces[0] || mine[1] == w.Namespaces[1]) {
		// What is harmless on a jail's own init and mounts would hit the machine's.
		fmt.Println("this is no jail: its namespaces are the machine's")
		return 3
	}
	slots := make(chan struct{}, atOnce)
	var mu sync.Mutex
	var all sync.WaitGroup
	for _, name := range args[1:] {
		slots <- struct{}{}
		all.Add(1)
		go func() {
			defer func() { <-slots; all.Done() }()
			answer := apart(args[0], w, name)
			mu.Lock()
			defer mu.Unlock()
			fmt.Printf("%s\t%s\n", name, answer)
		}()
	}
	all.Wait()
	fmt.Println("end\t" + w.Nonce)
	return 0
}

var tracing sync.Mutex

// namespaces names this process's own: pid and mount.
func namespaces() (names [2]string) {
	names[0], _ = os.Readlink("/proc/self/ns/pid")
	names[1], _ = os.Readlink("/proc/self/ns/mnt")
	return names
}

// apart starts "@one" and gives its answer.
func apart(world string, w *world, name string) string {
	a := byName(name)
	if strings.Contains(name, "ptrace") || strings.HasPrefix(name, "init: ") || strings.HasPrefix(name, "signal: ") {
		tracing.Lock() // a process has one tracer at a time, and SIGCONT ends a stop
		defer tracing.Unlock()
	}
	cmd := exec.Command("/proc/self/exe", "@one", world, name)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	runtime.LockOSThread() // the signal follows the thread
	defer runtime.UnlockOSThread()
	switch {
	case a.userns:
		cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
	case a.mounts && !w.Jailed && os.Getuid() == 0:
		cmd.SysProcAttr.Unshareflags = syscall.CLONE_NEWNS
	}
	var out bytes.Buffer
	cmd.Stdout = &out
	if err := cmd.Start(); err != nil {
		return "out\t" + reason(err)
	}
	end := time.AfterFunc(limit, func() { _ = cmd.Process.Kill() })
	defer end.Stop()
	err := cmd.Wait()
	answer := strings.TrimSpace(out.String())
	if answer == "" {
		return fmt.Sprintf("out\tended: %v", err)
	}
	return answer
}

// one performs an attack. Its answer goes out by a copy of standard output, and while
// the attack still has the process that it may have spoilt.
func one(args []string) int {
	w, err := load(args[0])
	if err != nil {
		return 3
	}
	a, w := byName(args[1]), w.called(args[1])
	runtime.LockOSThread()
	if !w.Jailed && a.setup != nil {
		if err := a.setup(w); err != nil {
			fmt.Println("out\tset-up: " + reason(err))
			return 0
		}
	}
	if err := a.do(w); err != nil {
		fmt.Println("out\t" + reason(err))
		return 0
	}
	fmt.Println("in\t-")
	return 0
}

// reason names the errno, and nothing that differs from run to run.
func reason(err error) string {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		if name := unix.ErrnoName(errno); name != "" {
			return name
		}
		return fmt.Sprintf("errno %d", int(errno))
	}
	return strings.ReplaceAll(err.Error(), "\n", " ")
}

// call makes a system call. Its arguments stay where they are until it returns: an
// address that the runtime has moved away from would be read or written as garbage.
//
//go:uintptrescapes
func call(nr, a, b, c, d, e, f uintptr) (uintptr, error) {
	r, _, errno := unix.Syscall6(nr, a, b, c, d, e, f)
	if errno != 0 {
		return 0, errno
	}
	return r, nil
}
