package bench

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"sandboxd/internal/bwrap"
	"sandboxd/internal/host"
	"sandboxd/internal/host/probe"
	"sandboxd/internal/plan"
	"sandboxd/internal/roots"
	"sandboxd/internal/testenv"
	"sandboxd/protocol"
	"sandboxd/protocol/broker"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == probe.Role {
		os.Exit(probe.Main(os.Args[2:]))
	}
	if len(os.Args) > 1 && os.Args[1] == relayRole {
		relay()
		os.Exit(0)
	}
	os.Exit(testenv.RunMain(m))
}

// workspace is the strict policy that most callers use.
func workspace(ws string, more ...string) protocol.Policy {
	return protocol.Policy{WritableRoots: append([]string{ws}, more...), Network: protocol.Network{Mode: protocol.NetOff},
		Scratch: protocol.ScratchTmpfs, EnvAllow: []string{"PATH"}}
}

// dir is a workspace outside /tmp, which the private scratch covers.
func dir(b *testing.B) string {
	b.Helper()
	base := "/var/lib"
	if os.Getuid() != 0 {
		base, _ = os.UserHomeDir()
	}
	ws, err := os.MkdirTemp(base, "sandboxd-bench-")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { os.RemoveAll(ws) })
	return ws
}

// bare is bubblewrap by itself with the same mounts, sources by path.
type bare struct {
	path string
	cmd  bwrap.Command
}

func newBare(b *testing.B, p protocol.Policy) bare {
	b.Helper()
	f, err := probe.Facts(context.Background(), probe.Options{})
	if err != nil || f.Bwrap.State != host.Works {
		testenv.Skip(b, "bwrap", f.Bwrap.Reason)
	}
	r, err := roots.Survey(plan.Paths(p, f), roots.Writability{})
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	f.Layout = r.Layout()
	pl, err := plan.Build(p, f)
	if err != nil {
		b.Fatal(err)
	}
	flags := map[string]bool{}
	for name, has := range f.Bwrap.Flags {
		flags[name] = has && name != "bind-fd" && name != "ro-bind-fd"
	}
	cmd, err := bwrap.Render(pl, bwrap.Options{FirstFD: 3, Flags: flags})
	if err != nil {
		b.Fatal(err)
	}
	return bare{f.Bwrap.Path, cmd}
}

// command is ready to run; its data descriptors are read to their end, so each run
// has its own.
func (x bare) command(b *testing.B, argv ...string) *exec.Cmd {
	b.Helper()
	c := exec.Command(x.path, append(append(slices.Clone(x.cmd.Args), "--"), argv...)...)
	c.Env, c.Dir = []string{}, "/"
	for _, in := range x.cmd.Inherit {
		if in.Kind != bwrap.Data {
			b.Fatalf("bubblewrap takes a descriptor for %s", in.Path)
		}
		r, w, err := os.Pipe()
		if err != nil {
			b.Fatal(err)
		}
		if _, err := w.WriteString(in.Content); err != nil {
			b.Fatal(err)
		}
		w.Close()
		c.ExtraFiles = append(c.ExtraFiles, r)
	}
	return c
}

func (x bare) run(b *testing.B, argv ...string) time.Duration {
	b.Helper()
	c := x.command(b, argv...)
	from := time.Now()
	if err := c.Run(); err != nil {
		b.Fatal(err)
	}
	took := time.Since(from)
	for _, f := range c.ExtraFiles {
		f.Close()
	}
	return took
}

// helper starts sandboxd.
func helper(b *testing.B, p protocol.Policy, args ...string) *broker.Helper {
	b.Helper()
	h, err := broker.Start(context.Background(), broker.Options{Path: testenv.Binary(b), Policy: &p, Args: args, Demand: broker.Full,
		Env: []string{"PATH=/usr/bin:/bin"}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = h.Close() })
	return h
}

func execute(b *testing.B, h *broker.Helper, cwd string, argv ...string) time.Duration {
	b.Helper()
	from := time.Now()
	r, err := h.Exec(context.Background(), broker.Command{Argv: argv, Cwd: cwd})
	if err != nil || r.Code != 0 {
		b.Fatalf("%+v, %v", r, err)
	}
	return time.Since(from)
}

// series is the measured times of one way.
type series []time.Duration

func (s series) median() time.Duration {
	if len(s) == 0 {
		return 0
	}
	t := slices.Clone(s)
	slices.Sort(t)
	return t[len(t)/2]
}

// report gives a median in µs and its ratio to another way of the same run.
func report(b *testing.B, name string, s, to series) {
	b.ReportMetric(float64(s.median().Nanoseconds())/1e3, name+"-µs")
	b.ReportMetric(float64(s.median())/float64(to.median()), name+"/bwrap")
}

// BenchmarkTrue interleaves one /bin/true each way: fork and exec, bare bubblewrap
// with the same mounts, a helper that builds each jail when it is asked, one that is
// asked again as soon as a jail can be ready, and one that is asked back to back.
func BenchmarkTrue(b *testing.B) {
	ws := dir(b)
	p := workspace(ws)
	x := newBare(b, p)
	cold, warm, busy := helper(b, p, "--standby=off"), helper(b, p), helper(b, p)
	var fork, bw, colds, warms, busies series
	for b.Loop() {
		from := time.Now()
		if err := exec.Command("/bin/true").Run(); err != nil {
			b.Fatal(err)
		}
		fork = append(fork, time.Since(from))
		one := x.run(b, "/bin/true")
		bw = append(bw, one)
		time.Sleep(4 * one) // what is left of its jail goes, as before every other way
		colds = append(colds, execute(b, cold, ws, "/bin/true"))
		time.Sleep(4 * one) // as far apart as a jail takes to build, with room
		warms = append(warms, execute(b, warm, ws, "/bin/true"))
		time.Sleep(4 * one) // its next jail is not to be built beside what follows
		execute(b, busy, ws, "/bin/true")
		busies = append(busies, execute(b, busy, ws, "/bin/true"))
		time.Sleep(4 * one)
	}
	b.ReportMetric(0, "ns/op")
	report(b, "fork", fork, bw)
	report(b, "cold", colds, bw)
	report(b, "standby", warms, bw)
	report(b, "back-to-back", busies, bw)
	b.ReportMetric(float64(bw.median().Nanoseconds())/1e3, "bwrap-µs")
}
