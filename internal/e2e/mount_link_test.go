//go:build linux

package e2e

import (
	"strings"
	"testing"

	"sandboxd/protocol"
)

// The mask goes where the link leads, under every name of it.
func TestMountProtectedLinkIntoAGrantedTree(t *testing.T) {
	const attack = try + `try list 'ls keys | grep .'
try read cat keys/a
try write 'echo x >keys/a'
try add ': >keys/b'
try move mv keys k
try remove 'rm -rf keys && mkdir keys'
try beside cat f
`
	eachSite(t, func(t *testing.T, s *site) {
		s.write("ws/keys/a", "secret\n")
		s.write("ws/f", "f\n")
		s.link("ws/keys", "links") // "links" itself is outside every grant
		before := s.tree()
		s.expect(s.jail(s.policy(s.protect("links")), attack), "list no\nread no\nwrite no\nadd no\nmove no\nremove no\nbeside yes\n")
		s.unchanged(before)
		if r := s.jail(s.policy(), attack); !strings.HasPrefix(r.stdout, "list yes\nread yes\nwrite yes\nadd yes\nmove yes\n") {
			t.Errorf("the control: %q", r.stdout)
		}
	})
}

// A link in a place that a command may write is not followed, for no list.
func TestMountLinkThatACommandCouldHaveMade(t *testing.T) {
	eachSite(t, func(t *testing.T, s *site) {
		s.write("secret/f", "s\n")
		link := s.link(s.path("secret"), "ws/link")
		for name, p := range map[string]protocol.Policy{
			"protected": s.policy(s.protect("ws/link")),
			"readable":  s.policy(func(p *protocol.Policy) { p.ReadableRoots = []string{link} }),
			"writable":  s.policy(func(p *protocol.Policy) { p.WritableRoots = append(p.WritableRoots, link) }),
			"mount": s.policy(func(p *protocol.Policy) {
				p.Mounts = []protocol.Mount{{Path: link + "/f", Access: protocol.ReadOnly}}
			}),
		} {
			if msg := s.refused(p); !strings.Contains(msg, link) {
				t.Errorf("%s: %s", name, msg)
			}
		}
		// The control: the same names without the link.
		s.expect(s.jail(s.policy(func(p *protocol.Policy) { p.ReadableRoots = []string{s.path("secret")} }), "cat ../secret/f"), "s\n")
	})
}

// What reaches into a protected directory through a link would land after its mask.
func TestMountReachesIntoAProtectedDirectory(t *testing.T) {
	eachSite(t, func(t *testing.T, s *site) {
		s.write("ws/priv/inner/f", "secret\n")
		alias := s.link("ws/priv", "alias")
		protect := s.protect("ws/priv")
		cases := map[string]func(*protocol.Policy){
			"read-only mount": func(p *protocol.Policy) {
				p.Mounts = []protocol.Mount{{Path: alias + "/inner", Access: protocol.ReadOnly}}
			},
			"read-write mount": func(p *protocol.Policy) {
				p.Mounts = []protocol.Mount{{Path: alias + "/inner/f", Access: protocol.ReadWrite}}
			},
			"readable root": func(p *protocol.Policy) { p.ReadableRoots = []string{alias + "/inner"} },
			"writable root": func(p *protocol.Policy) { p.WritableRoots = append(p.WritableRoots, alias+"/inner") },
			"the directory": func(p *protocol.Policy) { p.ReadableRoots = []string{alias} },
			"scratch":       func(p *protocol.Policy) { p.Scratch = alias + "/inner" },
		}
		for name, change := range cases {
			msg := s.refused(s.policy(protect, change))
			for _, word := range []string{alias, s.path("ws/priv"), "protected[0]"} {
				if !strings.Contains(msg, word) {
					t.Errorf("%s: %q does not name %q", name, msg, word)
				}
			}
		}
		// The control: unprotected, the same mount is what it says.
		s.expect(s.jail(s.policy(cases["read-only mount"]), "cat "+alias+"/inner/f"), "secret\n")
		// By its own spelling a root below a protected path stays masked: no grant
		// carves a hole.
		r := s.jail(s.policy(protect, func(p *protocol.Policy) { p.ReadableRoots = []string{s.path("ws/priv/inner")} }), try+"try read cat priv/inner/f")
		s.expect(r, "read no\n")
		if m := entry(t, r, "mounts"); !strings.Contains(m, "ro=0,rw=1,mask=1") {
			t.Errorf("report: %q", m)
		}
	})
}
