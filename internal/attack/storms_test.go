//go:build linux

package attack

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandboxd/internal/testenv"
	"sandboxd/protocol"
)

// hops bounds a storm that nothing ends, in processes of each chain.
const hops = 100_000

// storm starts chains of processes, each of which lives only until it has started the
// next, in a session of its own: "@storm TAG CHAINS [reap]". Whoever lists processes and
// signals them comes too late for every one. It reaps them all at once, if it is to.
func storm(args []string) int {
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT} {
		ignore(s)
	}
	if len(args) > 2 {
		ignore(syscall.SIGCHLD)
		_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	}
	chains, _ := strconv.Atoi(args[1])
	for range chains {
		for exec.Command("/proc/self/exe", "@hop", args[0]).Start() != nil {
			time.Sleep(time.Millisecond) // where pids are few
		}
	}
	fmt.Println("storming")
	time.Sleep(time.Minute)
	return 0
}

func hop([]string) int {
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT} {
		ignore(s)
	}
	rawHop(hops)
	return 0
}

// rawHop's processes may neither grow their stacks nor allocate: each has one thread of
// what was a Go program.
//
//go:nosplit
//go:norace
func rawHop(n int) {
	for ; n > 0; n-- {
		pid, _, errno := unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
		if errno == 0 && pid != 0 {
			unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
		}
		unix.RawSyscall(unix.SYS_SETSID, 0, 0, 0)
	}
	unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
}

// storming says how many processes with a tag can be seen, the storm's own included.
func storming(tag string) (n int) {
	for pid := range testenv.Processes() {
		b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if bytes.Contains(b, []byte("\x00"+tag)) {
			n++
		}
	}
	return n
}

// A storm of forks is cancelled at any moment of it: one terminal frame, and nothing
// left of it. It is seen before, which is the control.
func TestForkStormWhileCancelled(t *testing.T) {
	testenv.EachUser(t, func(t *testing.T, u testenv.User) {
		s := newScene(t, u, nil)
		h := start(t, u, s.policy(nil), nil)
		h.greet()
		seen := 0
		for n, wait := range []time.Duration{0, 0, 3, 30, 200} {
			id, tag := uint64(n+2), fmt.Sprintf("storm-%s-%d", s.Nonce, n)
			h.send(id, s.start(s.program(), "@storm", tag, "8"))
			if n > 0 { // the first is cancelled while it is being built
				for storming(tag) < 3 {
					time.Sleep(time.Millisecond)
				}
				seen++
			}
			time.Sleep(wait * time.Millisecond)
			h.send(id, protocol.Cancel{})
			r := h.collect(id)
			if r.exit == nil || !r.exit.Cancelled {
				t.Errorf("%s: %+v, %+v", wait, r.exit, r.fail)
			}
			if left := storming(tag); left > 0 {
				t.Errorf("%s: %d processes are left", wait, left)
			}
			if r := h.run(id+100, s.start("/bin/true")); r.exit == nil || r.exit.Code != 0 {
				t.Fatalf("%s: the next execution: %+v, %+v", wait, r.exit, r.fail)
			}
		}
		if seen == 0 {
			t.Error("no storm was seen")
		}
		if code := h.end(); code != 0 {
			t.Errorf("the helper's exit is %d", code)
		}
	})
}

// smallPids names the number of pids of the namespace in which TestPidReuse runs again.
const smallPids = "SANDBOXD_ATTACK_PIDS"

// A command whose processes live for an instant is cancelled where pids come round in
// no time: the helper's signals reach nobody else who got such a number meanwhile.
func TestPidReuse(t *testing.T) {
	if n := os.Getenv(smallPids); n != "" {
		reusePids(t, n)
		return
	}
	if os.Getuid() != 0 {
		testenv.Skip(t, "root", "a pid namespace needs root")
	}
	if !since(6, 14) {
		testenv.Skip(t, "pid-max", "this kernel has one pid_max for all pid namespaces")
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestPidReuse$", "-test.v", "-test.timeout=4m")
	cmd.Env = append(os.Environ(), smallPids+"=1000", "SANDBOXD_TEST_BINARY="+testenv.Binary(t))
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestPidReuse") {
		t.Errorf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}

func since(major, minor int) bool {
	var u unix.Utsname
	var a, b int
	if unix.Uname(&u) != nil {
		return false
	}
	_, err := fmt.Sscanf(unix.ByteSliceToString(u.Release[:]), "%d.%d", &a, &b)
	return err == nil && (a > major || a == major && b >= minor)
}

func reusePids(t *testing.T, most string) {
	ok(t, unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""), unix.Mount("proc", "/proc", "proc", 0, ""),
		os.WriteFile("/proc/sys/kernel/pid_max", []byte(most), 0))
	t.Run("jail", func(t *testing.T) { reuseOfPids(t, "exec ", "", 4, 25) })
	// No /proc of its own can be mounted where something lies on this one. Then whoever
	// is below the helper is listed and signalled, which takes a while where there are many.
	ok(t, unix.Mount("tmpfs", "/proc/driver", "tmpfs", 0, ""))
	t.Run("degraded", func(t *testing.T) { reuseOfPids(t, "for i in $(seq 300); do sleep 60 & done; exec ", " reap", 12, 3) })
}

func reuseOfPids(t *testing.T, before, how string, outside, storms int) {
	testenv.EachUser(t, func(t *testing.T, u testenv.User) {
		s := newScene(t, u, nil)
		h := start(t, u, s.policy(nil), nil)
		if got := slices.Contains(h.hello.Features, "degraded"); got != strings.Contains(t.Name(), "degraded") {
			t.Fatalf("degraded is %v", got)
		}
		h.greet()
		var mu sync.Mutex
		var all sync.WaitGroup
		stop := make(chan struct{})
		highest, rounds, bystanders := 0, 0, 0
		for range outside {
			all.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					cmd := testenv.As(t, exec.Command("/bin/sleep", "0.01"), u)
					if err := cmd.Start(); err != nil {
						continue // no pid is free just now
					}
					err := cmd.Wait()
					mu.Lock()
					bystanders++
					if pid := cmd.Process.Pid; pid < highest {
						rounds, highest = rounds+1, pid
					} else {
						highest = pid
					}
					mu.Unlock()
					if ws, is := cmd.ProcessState.Sys().(syscall.WaitStatus); is && ws.Signaled() {
						t.Errorf("a process outside was ended by %s (%v)", ws.Signal(), err)
					}
				}
			})
		}
		cancelled := 0
		for n := range storms {
			id := uint64(n + 2)
			h.send(id, s.start("/bin/sh", "-c", before+s.program()+" @storm storm-"+s.Nonce+" 4"+how))
			for storming("storm-"+s.Nonce) == 0 && how != "" {
				time.Sleep(time.Millisecond)
			}
			time.Sleep(time.Duration(20+n*4) * time.Millisecond)
			h.send(id, protocol.Cancel{})
			if r := h.collect(id); r.exit != nil && r.exit.Cancelled {
				cancelled++
			} else if r.exit != nil || r.fail.Code != protocol.CodeSpawnFailed { // out of pids
				t.Errorf("%+v, %+v", r.exit, r.fail)
			}
		}
		close(stop)
		all.Wait()
		if code := h.end(); code != 0 {
			t.Errorf("the helper's exit is %d", code)
		}
		t.Logf("%d storms cancelled, %d processes outside, pids came round %d times", cancelled, bystanders, rounds)
		if cancelled == 0 || bystanders < 100 || rounds < 10 {
			t.Error("pids were not reused")
		}
	})
}

// inodes makes empty files in a directory until that fails or there are so many:
// "@inodes DIR MOST".
func inodes(args []string) int {
	most, _ := strconv.Atoi(args[1])
	n := 0
	for ; n < most; n++ {
		fd, err := unix.Open(fmt.Sprintf("%s/i%d", args[0], n), unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY, 0o600)
		if err != nil {
			fmt.Println(n, reason(err))
			return 0
		}
		unix.Close(fd)
	}
	fmt.Println(n, "-")
	return 0
}

// A command takes inodes of the jail's own file systems: the host's have as many as
// before, and the next execution begins with all of its own. In a writable root it
// takes the host's, which is the control.
func TestInodes(t *testing.T) {
	const most = 20_000
	testenv.EachUser(t, func(t *testing.T, u testenv.User) {
		s := newScene(t, u, nil)
		h := start(t, u, s.policy(nil), nil)
		h.greet()
		places := []string{"/tmp", "/dev/shm", s.Base}
		free := func() (n []int64) {
			for _, dir := range places {
				var st unix.Statfs_t
				ok(t, unix.Statfs(dir, &st))
				n = append(n, int64(st.Ffree))
			}
			return n
		}
		// Which of the host's file systems lose as many.
		takes := func(id uint64, dir string) (of []string) {
			before := free()
			r := h.run(id, s.start(s.program(), "@inodes", dir, strconv.Itoa(most)))
			var n int
			if _, err := fmt.Sscan(r.stdout, &n); err != nil || r.exit == nil || n < 1000 {
				t.Fatalf("%s: %q, %+v, %+v", dir, r.stdout, r.exit, r.fail)
			}
			for i, now := range free() {
				if before[i]-now > most/2 {
					of = append(of, places[i])
				}
			}
			return of
		}
		for n, dir := range []string{"/tmp", "/dev/shm"} {
			if of := takes(uint64(2+10*n), dir); of != nil {
				t.Errorf("%s: the inodes are the host's, of %q", dir, of)
			}
			if r := h.run(uint64(100+n), s.start("/bin/sh", "-c", "ls -A "+dir+" | grep -c ^i")); r.exit == nil || r.stdout != "0\n" {
				t.Errorf("%s: the next execution: %q, %+v, %+v", dir, r.stdout, r.exit, r.fail)
			}
		}
		if of := takes(200, s.Base+"/ws"); !slices.Contains(of, s.Base) && free()[2] > 0 { // some file systems count none
			t.Errorf("the control takes none: %q", of)
		}
		if code := h.end(); code != 0 {
			t.Errorf("the helper's exit is %d", code)
		}
	})
}
