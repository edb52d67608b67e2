//go:build linux

package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"sandboxd/protocol"
)

// manyRoots makes n directories beside the workspace that no common root covers.
func (s *site) manyRoots(n int) []string {
	s.t.Helper()
	s.mkdir("many")
	var paths []string
	for i := range n {
		path := fmt.Sprintf("%s/many/%04d", s.dir, i)
		if err := os.Mkdir(path, 0o755); err != nil {
			s.t.Fatal(err)
		}
		s.own(path)
		paths = append(paths, path)
	}
	return paths
}

func TestMountManyRoots(t *testing.T) {
	eachSite(t, func(t *testing.T, s *site) {
		paths := s.manyRoots(2000)
		for _, n := range []int{400, 2000} {
			p := s.policy(func(p *protocol.Policy) {
				p.WritableRoots = append(p.WritableRoots, paths[:n/2]...)
				p.ReadableRoots = paths[n/2 : n]
			})
			r := s.jail(p, try+fmt.Sprintf(`try first ': >%s/f'
try last ': >%s/f'
try "read-only" ': >%s/f'
ls %s | wc -l
`, paths[0], paths[n/2-1], paths[n-1], s.path("many")))
			s.expect(r, fmt.Sprintf("first yes\nlast yes\nread-only no\n%d\n", n))
			if m := entry(t, r, "mounts"); !strings.Contains(m, fmt.Sprintf("ro=%d,rw=%d,", n/2, n/2+1)) {
				t.Errorf("report: %q", m)
			}
			if v := entry(t, r, "roots"); !strings.Contains(v, fmt.Sprintf("verified=%d", n+1)) {
				t.Errorf("report: %q", v)
			}
		}
		// The most that the decoder takes is more than bubblewrap takes with a mask
		// in each, and is refused in this program's words before anything runs.
		var gone []string
		for _, path := range paths[:1390] {
			gone = append(gone, path+"/gone")
		}
		before := s.tree()
		msg := s.refused(s.policy(func(p *protocol.Policy) {
			p.WritableRoots = append(p.WritableRoots, paths[:1390]...)
			p.Protected = gone
		}))
		if !strings.Contains(msg, "arguments") || !strings.Contains(msg, "9000") {
			t.Errorf("got %q", msg)
		}
		s.unchanged(before)
	})
}

// One entry too many is the decoder's refusal.
func TestMountOneRootTooMany(t *testing.T) {
	eachSite(t, func(t *testing.T, s *site) {
		p := s.policy()
		for i := range 2801 - len(p.WritableRoots) - len(p.EnvAllow) {
			p.ReadableRoots = append(p.ReadableRoots, fmt.Sprintf("%s/%d", s.dir, i))
		}
		c := connect(t, s.u, s.policy())
		start := protocol.ExecStart{Argv: []string{"/bin/true"}, Cwd: s.ws, Token: []byte("t"), Env: map[string]string{}, Policy: p.Append(nil)}
		c.send(2, start)
		if r := c.collect(2); r.fail == nil || r.fail.Code != protocol.CodeBadPolicy || !strings.Contains(r.fail.Msg, "2800") {
			t.Errorf("got %+v, %+v", r.exit, r.fail)
		}
		p.ReadableRoots = p.ReadableRoots[1:] // absent ones are tolerated
		start.Policy = p.Append(nil)
		c.send(3, start)
		if r := c.collect(3); r.exit == nil || r.exit.Code != 0 {
			t.Errorf("got %+v, %+v", r.exit, r.fail)
		}
		s.end(c)
	})
}
