package jail

import (
	"errors"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"sandboxd/internal/procfs"
)

// proc is one row of the process table (proc_pid_stat(5)).
type proc struct {
	pid, ppid int
	state     byte
	start     uint64 // clock ticks since boot: tells a reused pid
}

// procTable reads the process table. It is an interface so that a table with a
// row missing, or a kernel without the children file, can be put in its place.
type procTable interface {
	// children lists a process's children; errNoChildrenFile where this
	// kernel has no such file (CONFIG_PROC_CHILDREN).
	children(pid int) ([]int, error)
	all() ([]proc, error)
	stat(pid int) (proc, error)
	waits(p proc) bool // it sleeps until a child ends
}

var errNoChildrenFile = errors.New("this kernel has no /proc/<pid>/task/<tid>/children")

type realProc struct{}

// children reads the file of every task, not only the leader's: a thread's
// children stand in its own. A process that has gone has none.
func (realProc) children(pid int) ([]int, error) {
	dir := "/proc/" + strconv.Itoa(pid) + "/task"
	tasks, err := os.ReadDir(dir)
	if err != nil && !vanished(err) {
		return nil, err
	}
	var out []int
	for _, t := range tasks {
		b, err := slurpAll(dir + "/" + t.Name() + "/children")
		if errors.Is(err, os.ErrNotExist) {
			if _, serr := os.Stat(dir + "/" + t.Name() + "/stat"); serr == nil {
				return nil, errNoChildrenFile
			}
			continue
		}
		if err != nil && !vanished(err) {
			return nil, err
		}
		for _, f := range strings.Fields(string(b)) {
			if n, err := strconv.Atoi(f); err == nil {
				out = append(out, n)
			}
		}
	}
	return out, nil
}

// vanished tells a process that has ended from a table that cannot be read.
func vanished(err error) bool {
	return errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ESRCH)
}

func (realProc) stat(pid int) (proc, error) {
	var buf [1024]byte
	n, err := slurp("/proc/"+strconv.Itoa(pid)+"/stat", buf[:])
	if err != nil {
		return proc{}, err
	}
	row, err := procfs.ParseStat(buf[:n])
	if err != nil {
		return proc{}, err
	}
	return proc{pid: pid, ppid: row.PPID, state: row.State, start: row.Start}, nil
}

// waits says whether a process sleeps in wait4(2) or waitid(2), see proc_pid_syscall(5).
// Where that is not shown to this user, or is a number of another table because it is a
// 32-bit program under a 64-bit kernel, whether it sleeps (proc_pid_stat(5): S): init does
// so nowhere else between its fork and its wait, unless something holds it up.
func (realProc) waits(p proc) bool {
	if p.state != 'S' {
		return false
	}
	var buf [64]byte
	n, err := slurp("/proc/"+strconv.Itoa(p.pid)+"/syscall", buf[:])
	if err != nil {
		return true
	}
	number, _, _ := strings.Cut(string(buf[:n]), " ")
	return number == strconv.Itoa(unix.SYS_WAIT4) || number == strconv.Itoa(unix.SYS_WAITID) || strconv.IntSize == 64 && narrow(p.pid)
}

// narrow says whether a process runs a 32-bit program: elf(5), EI_CLASS.
func narrow(pid int) bool {
	const class, is32 = 4, 1
	var head [class + 1]byte
	n, err := slurp("/proc/"+strconv.Itoa(pid)+"/exe", head[:])
	return err == nil && n == len(head) && head[class] == is32
}

// slurp reads a small file of /proc by itself: os.ReadFile first offers it to the
// runtime's poller, at seven more calls.
func slurp(path string, buf []byte) (n int, err error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	for err == unix.EINTR {
		fd, err = unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	}
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	for n < len(buf) {
		m, err := unix.Read(fd, buf[n:])
		switch {
		case err == unix.EINTR:
		case err != nil:
			return n, err
		case m == 0:
			return n, nil
		default:
			n += m
		}
	}
	return n, nil
}

// slurpAll reads a file of /proc of any size in the same way.
func slurpAll(path string) ([]byte, error) {
	for size := 1 << 10; ; size *= 8 {
		buf := make([]byte, size)
		n, err := slurp(path, buf)
		if err != nil || n < size {
			return buf[:n], err
		}
	}
}

func (t realProc) all() ([]proc, error) {
	d, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	var out []proc
	for _, n := range names {
		pid, err := strconv.Atoi(n)
		if err != nil {
			continue
		}
		p, err := t.stat(pid)
		if err == nil {
			out = append(out, p)
		} else if !vanished(err) {
			return out, err
		}
	}
	return out, nil
}
