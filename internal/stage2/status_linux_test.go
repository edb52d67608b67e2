package stage2

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sandboxd/internal/testenv"
)

// manyGroups are numbers of five digits.
func manyGroups(n int) []uint32 {
	out := make([]uint32, n)
	for i := range out {
		out[i] = 10000 + uint32(i)%50000
	}
	return out
}

// A member of thousands of groups, as a directory service makes one, has the rest of its
// status behind a long line of them.
func TestMemberOfManyGroups(t *testing.T) {
	if os.Getuid() != 0 {
		testenv.Skip(t, "root", "setgroups needs privilege")
	}
	eachWorld(t, func(t *testing.T, w world) {
		for _, n := range []int{5, 1300, 65536} {
			w.groups = n
			r := w.run(t, w.spec("grep", "^Groups:", "/proc/self/status").Append(nil))
			if report := r.report(t); !report.NoNewPrivs || !report.SeccompHardening {
				t.Errorf("%d groups: %+v", n, report)
			}
			if got := len(strings.Fields(r.out)) - 1; got != n {
				t.Errorf("the command is in %d groups, not in %d", got, n)
			}
		}
	})
}

// What is longer than the buffer is read to its end, and the usual costs no memory.
func TestReadStatus(t *testing.T) {
	fd, err := unix.Open("/proc/self/status", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	var s status
	one := testing.AllocsPerRun(100, func() { // none, but for the race detector
		buf := make([]byte, 8192)
		_, _ = unix.Pread(fd, buf, 0)
	})
	if n := testing.AllocsPerRun(100, func() { s, err = readStatus(fd) }); n != one || err != nil || s.capSets != 5 {
		t.Errorf("%v allocations, %v, %+v", n, err, s)
	}
	tail := []byte("CapEff:\t00000000000000ff\nNoNewPrivs:\t1\nSeccomp:\t2\nSeccomp_filters:\t3\n")
	for _, long := range []int{0, 8000, 8192 - len(tail), 8192, 16384, 500000} {
		f := memfd(t, append(bytes.Repeat([]byte("Groups: 1\n"), long/10), tail...))
		want := status{seccomp: 2, filters: 3, noNewPrivs: true, counted: true, caps: 0xff, capSets: 1}
		if s, err := readStatus(int(f.Fd())); err != nil || s != want {
			t.Errorf("behind %d bytes: %+v, %v", long, s, err)
		}
		f.Close()
	}
}
