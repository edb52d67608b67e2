package bench

import (
	"context"
	"io"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"sandboxd/protocol/broker"
)

const size = 1 << 30 // bytes of one stream: what a start costs is measured elsewhere

// counter is a writer that keeps nothing.
type counter struct{ n int64 }

func (c *counter) Write(p []byte) (int, error) {
	c.n += int64(len(p))
	return len(p), nil
}

// BenchmarkOutput passes the same data through a plain pipe with a Go reader, through a
// process in between that does nothing else, and through the helper; the ratios are of
// bytes per second.
func BenchmarkOutput(b *testing.B) {
	ws := dir(b)
	h := helper(b, workspace(ws))
	argv := []string{"/usr/bin/head", "-c", strconv.Itoa(size), "/dev/zero"}
	var plain, between, framed series
	for b.Loop() {
		out := &counter{}
		c := exec.Command(argv[0], argv[1:]...)
		r, err := c.StdoutPipe()
		if err != nil {
			b.Fatal(err)
		}
		from := time.Now()
		if err := c.Start(); err != nil {
			b.Fatal(err)
		}
		if _, err := io.CopyBuffer(struct{ io.Writer }{out}, struct{ io.Reader }{r}, make([]byte, 64<<10)); err != nil || out.n != size {
			b.Fatalf("%d bytes, %v", out.n, err)
		}
		_ = c.Wait()
		plain = append(plain, time.Since(from))

		out = &counter{}
		between = append(between, relayed(b, exec.Command(argv[0], argv[1:]...), nil, nil, out))
		if out.n != size {
			b.Fatalf("%d bytes", out.n)
		}

		out = &counter{}
		from = time.Now()
		res, err := h.Exec(context.Background(), broker.Command{Argv: argv, Cwd: ws, Stdout: out})
		if err != nil || res.Code != 0 || out.n != size {
			b.Fatalf("%d bytes, %+v, %v", out.n, res, err)
		}
		framed = append(framed, time.Since(from))
	}
	rates(b, plain, between, framed)
}

// BenchmarkInput is the same for a command's stdin.
func BenchmarkInput(b *testing.B) {
	ws := dir(b)
	h := helper(b, workspace(ws))
	argv := []string{"/bin/sh", "-c", "cat >/dev/null"}
	zero := func() io.Reader { return io.LimitReader(zeros{}, size) }
	var plain, between, framed series
	for b.Loop() {
		c := exec.Command(argv[0], argv[1:]...)
		c.Stdin = struct{ io.Reader }{zero()}
		from := time.Now()
		if err := c.Run(); err != nil {
			b.Fatal(err)
		}
		plain = append(plain, time.Since(from))
		between = append(between, relayed(b, nil, exec.Command(argv[0], argv[1:]...), zero(), nil))
		from = time.Now()
		res, err := h.Exec(context.Background(), broker.Command{Argv: argv, Cwd: ws, Stdin: zero()})
		if err != nil || res.Code != 0 {
			b.Fatalf("%+v, %v", res, err)
		}
		framed = append(framed, time.Since(from))
	}
	rates(b, plain, between, framed)
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func rates(b *testing.B, plain, between, framed series) {
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(size/plain.median().Seconds()/1e6, "pipe-MB/s")
	b.ReportMetric(size/between.median().Seconds()/1e6, "relay-MB/s")
	b.ReportMetric(size/framed.median().Seconds()/1e6, "sandboxd-MB/s")
	b.ReportMetric(float64(plain.median())/float64(framed.median()), "sandboxd/pipe")
	b.ReportMetric(float64(between.median())/float64(framed.median()), "sandboxd/relay")
}

// BenchmarkStart is from the start of a helper to its hello, against an empty Go
// program's whole run plus one bubblewrap that runs true.
func BenchmarkStart(b *testing.B) {
	ws := dir(b)
	p := workspace(ws)
	x := newBare(b, p)
	empty := emptyProgram(b)
	var hello, least series
	for b.Loop() {
		from := time.Now()
		h := helper(b, p)
		hello = append(hello, time.Since(from))
		_ = h.Close()
		from = time.Now()
		if err := exec.Command(empty).Run(); err != nil {
			b.Fatal(err)
		}
		least = append(least, time.Since(from)+x.run(b, "/bin/true"))
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(hello.median().Nanoseconds())/1e3, "hello-µs")
	b.ReportMetric(float64(hello.median())/float64(least.median()), "hello/(empty+bwrap)")
}

func emptyProgram(b *testing.B) string {
	b.Helper()
	at := b.TempDir()
	if err := os.WriteFile(at+"/main.go", []byte("package main\n\nfunc main() {}\n"), 0o600); err != nil {
		b.Fatal(err)
	}
	c := exec.Command("go", "build", "-o", at+"/empty", at+"/main.go")
	c.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := c.CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	return at + "/empty"
}
