//go:build unix

package witness

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

func init() {
	unsupported = append(unsupported, syscall.EAFNOSUPPORT, syscall.EPROTONOSUPPORT, syscall.ESOCKTNOSUPPORT)
}

// hold takes an exclusive lock that only this process's end releases: how whoever
// started the probe sees from outside whether it still lives.
func hold(path string) error {
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CREAT|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return err
	}
	return unix.Flock(fd, unix.LOCK_EX)
}

// stay is a process that lives until it is killed: "--probe-stay TEXT [LOCK READY]".
func stay(args []string) {
	signal.Ignore(syscall.SIGTERM, syscall.SIGHUP)
	if len(args) == 3 {
		if err := hold(args[1]); err == nil {
			ready(args[2])
		}
	}
	for {
		time.Sleep(time.Hour)
	}
}

// ready renames a file into place that holds this process's id.
func ready(path string) {
	if os.WriteFile(path+".new", []byte(fmt.Sprint(os.Getpid())), 0o644) == nil {
		os.Rename(path+".new", path)
	}
}

// setsid leaves a grandchild in a session of its own that holds standard output,
// and ends: args are LOCK and READY.
func setsid(r *reporter, args []string) {
	self, err := os.Executable()
	if err == nil {
		cmd := tie(exec.Command(self, Prefix+"stay", r.nonce, args[0], args[1]))
		cmd.Stdout = os.Stdout
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		err = cmd.Start()
	}
	for end := time.Now().Add(time.Minute); err == nil; time.Sleep(5 * time.Millisecond) {
		if _, e := os.Stat(args[1]); e == nil {
			break
		}
		if time.Now().After(end) {
			err = fmt.Errorf("the grandchild did not get ready")
		}
	}
	r.answer("setsid", "", err)
}

// trap waits for TERM, does the allowed effect in its handler and ends with 7.
func trap(r *reporter, args []string) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGTERM)
	os.Remove(r.effect)
	err := hold(args[0])
	ready(args[1])
	r.answer("ready", "", err)
	<-c
	r.act()
	r.answer("trapped", "", nil)
	r.line("end", r.nonce)
	os.Exit(7)
}

// ignore is told of TERM, says so and stays.
func ignore(r *reporter, args []string) {
	c := make(chan os.Signal, 16)
	signal.Notify(c, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT)
	err := hold(args[0])
	ready(args[1])
	r.answer("ready", "", err)
	for {
		<-c
		r.answer("ignored", "", nil)
	}
}

// setuid starts a set-user-ID program that ends by itself and reports whether its
// effective user was another than this process's.
func setuid(r *reporter, args []string) {
	got, err := effective(args)
	if err == nil && got == os.Geteuid() {
		err = fmt.Errorf("it runs as uid %d, like its caller: %w", got, syscall.EPERM)
	}
	r.answer("setuid", fmt.Sprint(got), err)
}

// effective looks at the program when it has ended and before it is reaped. Earlier
// would be too early: execve closes the descriptor by which Start learns of its success
// before it gives the process its new user.
func effective(args []string) (int, error) {
	cmd := exec.Command(args[0], args[1:]...)
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	defer cmd.Wait()
	return endedAs(cmd.Process.Pid)
}

// cpu burns processor time until MILLISECONDS of this process's own are used up.
func cpu(r *reporter, args []string) {
	want := time.Duration(size(args[0])) * time.Millisecond
	for {
		for range 1_000_000 { // an empty loop is not optimised away
		}
		var u unix.Rusage
		if unix.Getrusage(unix.RUSAGE_SELF, &u) == nil &&
			time.Duration(u.Utime.Nano()+u.Stime.Nano()) >= want {
			break
		}
	}
	r.answer("cpu", "", nil)
}

// descriptors reports whether one above 2 was handed down: every one that does not
// belong to the runtime (which opens its own epoll and event descriptors).
func descriptors(r *reporter, _ []string) {
	err := errNone
	found := ""
	for fd := 3; fd < 1024; fd++ {
		if _, e := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); e != nil {
			continue
		}
		to, _ := os.Readlink(filepath.Join("/proc/self/fd", fmt.Sprint(fd)))
		if to == "anon_inode:[eventpoll]" || to == "anon_inode:[eventfd]" {
			continue
		}
		err, found = nil, found+fmt.Sprintf("%d %s\n", fd, to)
	}
	r.answer("descriptors", found, err)
}

func ignoreFileSize() { signal.Ignore(syscall.SIGXFSZ) }

func unixRoles() []role {
	return []role{
		{"setsid", "LOCK READY: leaves a grandchild behind", setsid},
		{"trap", "LOCK READY: handles TERM", trap},
		{"ignore", "LOCK READY: ignores TERM", ignore},
		{"setuid", "PROGRAM ARG...: starts a set-user-ID program", setuid},
		{"cpu", "MILLISECONDS: burns processor time", cpu},
		{"descriptors", ": lists descriptors above 2", descriptors},
		{"socket", "FAMILY...: opens sockets", sockets},
	}
}
