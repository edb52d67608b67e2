package seccomp

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"sandboxd/internal/seccomp/seccomptest"
	"sandboxd/internal/stage2/spec"
)

// roleVar turns this test binary into a child that installs filters for good.
const roleVar = "SECCOMP_TEST_ROLE"

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVar); role != "" {
		if err := child(role, os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	code := m.Run()
	seccomptest.Remove()
	os.Exit(code)
}

func child(role string, args []string) error {
	runtime.LockOSThread()
	o := spec.Seccomp{DenyNet: strings.Contains(role, "net"), DenyTrace: strings.Contains(role, "trace")}
	if !strings.Contains(role, "privs") {
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			return err
		}
	}
	switch {
	case strings.Contains(role, "off"):
	case strings.Contains(role, "marked"):
		if err := install(marked(o)); err != nil {
			return err
		}
	case strings.Contains(role, "diverge"):
		return diverge(o)
	default:
		if err := Install(o); err != nil {
			return err
		}
	}
	if strings.Contains(role, "threads") {
		return otherThread()
	}
	return unix.Exec(args[0], args, nil)
}

// marks are errnos that the kernel never gives, one for each rule, so that an
// answer names the rule that gave it.
var marks = map[seccomptest.Filter]int{
	seccomptest.GuardArch: 201, seccomptest.GuardIoctl: 202, seccomptest.Hardening: 203,
	seccomptest.Trace: 203, // one program with the hardening
	seccomptest.Net:   204, seccomptest.Left: 205, seccomptest.LeftUnseen: 206,
}

// marked is Programs with the errno of each rule replaced. The library's own answer
// to x32 in the later programs becomes the guard's.
func marked(o spec.Seccomp) [][]Instruction {
	names := [][2]seccomptest.Filter{ // of EPERM and of ENOSYS, by position
		{seccomptest.GuardIoctl, seccomptest.GuardArch},
		{seccomptest.Left, seccomptest.LeftUnseen},
		{seccomptest.Hardening, seccomptest.GuardArch},
		{seccomptest.Net, ""},
	}
	var result [][]Instruction
	for i, program := range Programs(runtime.GOARCH, o) {
		program = append([]Instruction{}, program...)
		for j := range program {
			x32 := runtime.GOARCH == "amd64" && j == 4 && i > 1 // not in the one that is written out
			switch {
			case program[j].Code != unix.BPF_RET|unix.BPF_K:
			case program[j].K == retEPERM:
				program[j].K = retErrno | uint32(marks[names[i][0]])
			case program[j].K == retENOSYS && x32:
				program[j].K = retErrno | uint32(marks[seccomptest.GuardArch])
			case program[j].K == retENOSYS:
				program[j].K = retErrno | uint32(marks[names[i][1]])
			}
		}
		result = append(result, program)
	}
	return result
}

// otherThread looks from a thread that installed nothing.
func otherThread() error {
	result := make(chan error)
	mine := unix.Gettid()
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() == mine {
			result <- errors.New("the same thread")
			return
		}
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
		if err == nil {
			unix.Close(fd)
		}
		result <- err
	}()
	err := <-result
	fmt.Printf("%v\n", err)
	return nil
}

// diverge gives another thread a filter of its own first: TSYNC must then fail and
// name that thread.
func diverge(o spec.Seccomp) error {
	tid := make(chan int)
	go func() {
		runtime.LockOSThread()
		unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
		allow := []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K, K: retAllow}}
		prog := unix.SockFprog{Len: 1, Filter: &allow[0]}
		if err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptrOf(&prog), 0, 0); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(3)
		}
		tid <- unix.Gettid()
		select {}
	}()
	other := <-tid
	err := Install(o)
	fmt.Printf("%v\n", err != nil && strings.Contains(err.Error(), fmt.Sprintf("thread %d ", other)))
	return nil
}

type user struct {
	name string
	cred *syscall.Credential
}

// users are the caller and, for root, an ordinary uid as well.
func users() []user {
	list := []user{{name: fmt.Sprintf("uid %d", os.Getuid())}}
	if os.Getuid() == 0 {
		list = append(list, user{"uid 4242", &syscall.Credential{Uid: 4242, Gid: 4242}})
	}
	return list
}

func self(u user, role string, args ...string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.Env = []string{roleVar + "=" + role}
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: u.cred}
	return cmd
}

func names() []string {
	var list []string
	for _, c := range seccomptest.Cases {
		if !c.X86 || runtime.GOARCH == "amd64" {
			list = append(list, c.Name)
		}
	}
	return list
}

// Every denied call is really made three times: without filters (the control), with
// the filters as they ship, and with an errno of its own for each rule.
func TestWitness(t *testing.T) {
	witness := append([]string{seccomptest.Witness(t)}, names()...)
	for _, u := range users() {
		t.Run(u.name, func(t *testing.T) {
			off := seccomptest.Run(t, self(u, "off", witness...))
			on := seccomptest.Run(t, self(u, "net,trace", witness...))
			mark := seccomptest.Run(t, self(u, "net,trace,marked", witness...))
			for _, c := range seccomptest.Cases {
				if c.X86 && runtime.GOARCH != "amd64" {
					continue
				}
				check(t, c, off[c.Name], on[c.Name], mark[c.Name])
			}
		})
	}
}

func check(t *testing.T, c seccomptest.Case, off, on, mark int) {
	t.Helper()
	if c.Filter == seccomptest.None {
		if on != off || mark != off {
			t.Errorf("%s: %d without filters, %d with", c.Name, off, on)
		}
		return
	}
	if off >= 1000 && on == off {
		t.Logf("%s: this kernel has no gate for it (signal %d)", c.Name, off-1000)
		return
	}
	if off == marks[c.Filter] {
		t.Errorf("%s: the control gives %d, which is the rule's own mark", c.Name, off)
	}
	if on != int(c.Errno) {
		t.Errorf("%s: got errno %d, want %d", c.Name, on, c.Errno)
	}
	if mark != marks[c.Filter] {
		t.Errorf("%s: answered with %d, the mark of %q is %d", c.Name, mark, c.Filter, marks[c.Filter])
	}
}

// Without the net and the trace filter their calls give what they give unfiltered.
func TestOptionsLeaveTheRestAlone(t *testing.T) {
	witness := append([]string{seccomptest.Witness(t)}, names()...)
	u := users()[0]
	off := seccomptest.Run(t, self(u, "off", witness...))
	on := seccomptest.Run(t, self(u, "plain", witness...))
	denied := 0
	for _, c := range seccomptest.Cases {
		switch c.Filter {
		case seccomptest.Net, seccomptest.Trace, seccomptest.None:
			if on[c.Name] != off[c.Name] {
				t.Errorf("%s: %d without filters, %d with the hardening alone", c.Name, off[c.Name], on[c.Name])
			}
		case seccomptest.Hardening, seccomptest.Left, seccomptest.LeftUnseen:
			if on[c.Name] != int(c.Errno) {
				t.Errorf("%s: got %d", c.Name, on[c.Name])
			}
			denied++
		}
	}
	if denied == 0 {
		t.Error("nothing was denied")
	}
}

func TestStatusFromInside(t *testing.T) {
	for _, u := range users() {
		for role, filters := range map[string]string{"off": "0", "plain": "3", "net": "4", "net,trace": "4"} {
			out, err := self(u, role, "/bin/cat", "/proc/self/status").CombinedOutput()
			if err != nil {
				t.Fatalf("%s %s: %v: %s", u.name, role, err, out)
			}
			mode := "2"
			if role == "off" {
				mode = "0"
			}
			for key, want := range map[string]string{"NoNewPrivs": "1", "Seccomp": mode, "Seccomp_filters": filters} {
				if !strings.Contains(string(out), "\n"+key+":\t"+want+"\n") {
					t.Errorf("%s %s: %s is not %s", u.name, role, key, want)
				}
			}
		}
	}
}

func TestEveryThreadIsFiltered(t *testing.T) {
	for role, want := range map[string]string{"threads,off": "<nil>\n", "threads,net": "operation not permitted\n"} {
		out, err := self(users()[0], role).CombinedOutput()
		if err != nil || string(out) != want {
			t.Errorf("%s: %q, %v; want %q", role, out, err, want)
		}
	}
}

func TestThreadThatCannotBeSynchronised(t *testing.T) {
	out, err := self(users()[0], "diverge").CombinedOutput()
	if err != nil || string(out) != "true\n" {
		t.Errorf("%q, %v", out, err)
	}
}

// The order that stage 2 keeps matters: without no_new_privs an ordinary user gets
// no filter, and is told why.
func TestNoNewPrivsFirst(t *testing.T) {
	list := users()
	u := list[len(list)-1]
	if u.cred == nil && os.Getuid() == 0 {
		t.Fatal("no ordinary user")
	}
	out, err := self(u, "privs", "/bin/true").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "no_new_privs must be set first") {
		t.Errorf("%q, %v", out, err)
	}
}

func TestSupported(t *testing.T) {
	if err := Supported(); err != nil {
		t.Fatal(err)
	}
}
