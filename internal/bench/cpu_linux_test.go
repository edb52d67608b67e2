package bench

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// BenchmarkCPU gives the processor time of one /bin/true, with everything that it
// started: on a busy machine it says more than a clock does.
func BenchmarkCPU(b *testing.B) {
	ws := dir(b)
	p := workspace(ws)
	for _, way := range []string{"bwrap", "cold", "standby"} {
		b.Run(way, func(b *testing.B) {
			var run func()
			end := func() {}
			if way == "bwrap" {
				x := newBare(b, p)
				run = func() { x.run(b, "/bin/true") }
			} else {
				var args []string
				if way == "cold" {
					args = []string{"--standby=off"}
				}
				h := helper(b, p, args...)
				run = func() { execute(b, h, ws, "/bin/true") }
				end = func() { _ = h.Close() } // its time counts when it was waited for
			}
			before := children(b)
			n := 0
			for b.Loop() {
				run()
				n++
			}
			end()
			b.ReportMetric(float64((children(b)-before).Microseconds())/float64(n), "cpu-µs/op")
		})
	}
}

func children(b *testing.B) time.Duration {
	b.Helper()
	var ru unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_CHILDREN, &ru); err != nil {
		b.Fatal(err)
	}
	return time.Duration(ru.Utime.Nano() + ru.Stime.Nano())
}
