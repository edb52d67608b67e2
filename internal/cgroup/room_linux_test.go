package cgroup

import (
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"sandboxd/internal/testenv"
)

// A base without room for another cgroup is named so: EAGAIN alone sounds like a busy host.
func TestNoRoomIsNamed(t *testing.T) {
	for _, file := range []string{"cgroup.max.descendants", "cgroup.max.depth"} {
		b := bareBase(t)
		must(t, b.dir.write(file, "0"))
		if g, err := b.Create(1, none); err == nil || !strings.Contains(err.Error(), file) {
			t.Errorf("%s: %v, %v", file, g, err)
		}
		must(t, b.dir.write(file, "max"))
		must(t, create(t, b, 2, none).Remove(0))
	}
}

// A start in a base that somebody froze does not return, and a kill ends it.
func TestStartInAFrozenBase(t *testing.T) {
	// Go's runtime takes a fork for quick: it lends nobody the processor, and a collection
	// waits for it.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(max(2, runtime.GOMAXPROCS(0))))
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	for name, kill := range map[string]func(*Group) error{"cgroup.kill": (*Group).Kill, "one by one": (*Group).killListed} {
		t.Run(name, func(t *testing.T) {
			b := bareBase(t)
			g := create(t, b, 1, none)
			must(t, b.dir.write("cgroup.freeze", "1"))
			cmd := role(g, "wait")
			returned := make(chan error, 1)
			go func() { returned <- cmd.Start() }()
			testenv.Eventually(t, "a frozen child", func() bool {
				text, err := g.dir.read("cgroup.procs")
				return err == nil && text != ""
			})
			select {
			case err := <-returned:
				t.Fatalf("it returned: %v", err)
			default:
			}
			must(t, kill(g))
			if err := <-returned; err == nil {
				_ = cmd.Wait()
			}
			must(t, b.dir.write("cgroup.freeze", "0"))
			must(t, g.Remove(10*time.Second))
			if _, err := os.Stat(g.Path()); err == nil {
				t.Error("the cgroup is still there")
			}
		})
	}
}
