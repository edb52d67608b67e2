package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// BenchmarkRoots shows what many roots cost: the whole against bare bubblewrap with
// the same binds, and the rest, which is this program's own.
func BenchmarkRoots(b *testing.B) {
	for _, n := range []int{10, 100, 1000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			ws := dir(b)
			p := workspace(ws)
			p.WritableRoots = nil
			for i := range n {
				path := filepath.Join(ws, fmt.Sprintf("root%04d", i))
				if err := os.Mkdir(path, 0o755); err != nil {
					b.Fatal(err)
				}
				p.WritableRoots = append(p.WritableRoots, path)
			}
			x, h := newBare(b, p), helper(b, p, "--standby=off")
			var bw, all series
			for b.Loop() {
				bw = append(bw, x.run(b, "/bin/true"))
				all = append(all, execute(b, h, p.WritableRoots[0], "/bin/true"))
			}
			b.ReportMetric(0, "ns/op")
			report(b, "sandboxd", all, bw)
			b.ReportMetric(float64((all.median()-bw.median()).Microseconds())/float64(n), "own-µs/root")
		})
	}
}

// BenchmarkTwoHelpers runs a hundred commands in each of two helpers at once, and as
// many bare bubblewraps in two threads.
func BenchmarkTwoHelpers(b *testing.B) {
	const each = 100
	ws := dir(b)
	p := workspace(ws)
	x := newBare(b, p)
	var bw, ours series
	for b.Loop() {
		bw = append(bw, twice(func() {
			for range each {
				x.run(b, "/bin/true")
			}
		}))
		one, two := helper(b, p), helper(b, p)
		ours = append(ours, twoOf(func() {
			for range each {
				execute(b, one, ws, "/bin/true")
			}
		}, func() {
			for range each {
				execute(b, two, ws, "/bin/true")
			}
		}))
		_, _ = one.Close(), two.Close()
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(2*each/bw.median().Seconds(), "bwrap/s")
	b.ReportMetric(2*each/ours.median().Seconds(), "sandboxd/s")
	b.ReportMetric(float64(bw.median())/float64(ours.median()), "sandboxd/bwrap")
}

func twice(f func()) time.Duration { return twoOf(f, f) }

func twoOf(f, g func()) time.Duration {
	var wg sync.WaitGroup
	from := time.Now()
	wg.Add(2)
	go func() { defer wg.Done(); f() }()
	go func() { defer wg.Done(); g() }()
	wg.Wait()
	return time.Since(from)
}

// BenchmarkMemory is a helper's resident size, idle and after many executions, in MiB.
func BenchmarkMemory(b *testing.B) {
	ws := dir(b)
	h := helper(b, workspace(ws))
	execute(b, h, ws, "/bin/true")
	pid := helperPID(b)
	idle := rss(b, pid)
	n := 0
	for b.Loop() {
		execute(b, h, ws, "/bin/true")
		n++
	}
	b.ReportMetric(idle, "idle-MiB")
	b.ReportMetric(rss(b, pid), "after-MiB")
	b.ReportMetric(float64(n), "executions")
}

// helperPID is the child of this process that runs now.
func helperPID(b *testing.B) int {
	b.Helper()
	var kids []byte
	tasks, err := filepath.Glob("/proc/self/task/*/children")
	for _, t := range tasks {
		more, _ := os.ReadFile(t)
		kids = append(kids, more...)
	}
	for _, f := range strings.Fields(string(kids)) {
		comm, _ := os.ReadFile("/proc/" + f + "/comm")
		if strings.HasPrefix(string(comm), "sandboxd") {
			pid, _ := strconv.Atoi(f)
			return pid
		}
	}
	b.Fatalf("no helper among %q, %v", kids, err)
	return 0
}

func rss(b *testing.B, pid int) float64 {
	b.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		b.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "VmRSS:")
	kib, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		b.Fatal(err)
	}
	return float64(kib) / 1024
}
