package roots

import (
	"errors"
	"os"
	"testing"

	"sandboxd/internal/host"
	"sandboxd/internal/plan"
)

// In a writable place a link may be planted and is not followed; another spelling of a
// name is the same directory entry, and is.
func TestRespelledIsNotPlanted(t *testing.T) {
	dir, err := os.MkdirTemp("/var/tmp", "sandboxd-spelling-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.MkdirAll(dir+"/vendor/lib", 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		node host.Node
		want bool
	}{
		{host.Node{Kind: host.Link, Target: dir + "/vendor", Respelled: true}, true},
		{host.Node{Kind: host.Link, Target: "vendor", Respelled: true}, true},
		{host.Node{Kind: host.Link, Target: dir + "/vendor"}, false},
	} {
		r, err := newReached()
		if err != nil {
			t.Fatal(err)
		}
		r.layout[dir+"/VENDOR"] = c.node // as a survey of a Mac finds it
		s := &survey{r: r}
		err = s.run([]string{dir + "/VENDOR/lib"}, Writability{Paths: []string{dir}})
		var refusal *plan.Refusal
		if (err == nil) != c.want || err != nil && !errors.As(err, &refusal) {
			t.Errorf("%+v: %v", c.node, err)
		}
		res := r.layout.Resolve(dir + "/VENDOR/lib")
		if c.want && (res.Path != dir+"/vendor/lib" || res.Node.Kind != host.Dir || len(res.Links) != 0) {
			t.Errorf("%+v: %+v", c.node, res)
		}
		r.Close()
	}
}
