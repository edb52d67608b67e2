//go:build linux

package e2e

import (
	"fmt"
	"testing"
	"time"

	"sandboxd/protocol"
)

// A slow reader slows the command; the helper's memory stays flat.
func TestSlowReader(t *testing.T) {
	eachMode(t, func(t *testing.T, m mode) {
		c := m.connect(m.policy())
		c.try(2, m.dir, "head -c 1000000 /dev/zero") // warm
		before := c.memory("VmRSS")
		total := uint64(scaled(5<<30, 100<<20))
		c.start(3, m.dir, "head", "-c", fmt.Sprint(total), "/dev/zero")
		var n uint64
		var peak int
		for frames := 0; ; frames++ {
			f := c.next()
			x, ok := f.Body.(protocol.ExecExit)
			if ok {
				if x.Code != 0 || x.StdoutBytes != total || n != total {
					t.Errorf("%d bytes of %d, %+v", n, total, x)
				}
				break
			}
			o := f.Body.(protocol.ExecOut)
			if n += uint64(len(o.Data)); len(o.Data) > 64<<10 || o.Bytes != n {
				t.Fatalf("a chunk of %d bytes, count %d of %d", len(o.Data), o.Bytes, n)
			}
			if frames%256 == 0 {
				time.Sleep(time.Millisecond)
				peak = max(peak, c.memory("VmRSS"))
			}
		}
		if peak > before+16<<10 {
			t.Errorf("memory went from %d to %d KiB", before, peak)
		}
		c.down()
	})
}

// Caps are per stream; beyond a cap the command goes on and ends by itself.
func TestCapsPerStream(t *testing.T) {
	eachMode(t, func(t *testing.T, m mode) {
		p := m.policy()
		p.Limits.OutputBytes = 65536
		c := m.connect(p)
		for i, n := range []struct{ out, errs int }{{65536, 65537}, {65537, 65536}, {65535, 0}, {3000000, 3000000}, {1, 65537}} {
			r := c.sh(uint64(2+i), m.dir, fmt.Sprintf("head -c %d /dev/zero & head -c %d /dev/zero >&2; wait; exit 0", n.out, n.errs))
			x := r.exit
			if len(r.stdout) != min(n.out, 65536) || len(r.stderr) != min(n.errs, 65536) ||
				x.StdoutTruncated != (n.out > 65536) || x.StderrTruncated != (n.errs > 65536) {
				t.Errorf("%+v: %d and %d bytes, %+v", n, len(r.stdout), len(r.stderr), x)
			}
		}
		c.down()
	})
}
