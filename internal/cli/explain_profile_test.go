package cli

import (
	"strings"
	"testing"

	"sandboxd/internal/explain"
	"sandboxd/internal/host"
	"sandboxd/protocol"
)

// The profile of a macOS host is what --argv shows there. The plan is pure, so this
// needs no Mac.
func TestExplainedProfile(t *testing.T) {
	dir := host.Node{Kind: host.Dir, Mode: 0o755}
	l := host.Layout{"/": dir, "/private": dir, "/private/tmp": dir, "/dev": dir, "/Users": dir, "/Users/ann": dir, "/Users/ann/w": dir, "/Users/ann/w/secret": dir, "/usr": dir}
	f := host.Facts{OS: "darwin", UID: 501, GID: 20, Home: "/Users/ann", HelperPath: "/usr/sandboxd", Layout: l}
	for path := range map[string]bool{
		"/private/tmp/sandboxd-scratch": true, "/System": true, "/bin": true, "/sbin": true, "/Library": true, "/private/etc": true, "/private/var": true,
		"/opt": true, "/proc": true, "/run": true, "/var": true, "/tmp": true, "/etc": true,
	} {
		l[path] = host.Node{Kind: host.Missing}
	}
	p := protocol.Policy{WritableRoots: []string{"/Users/ann/w"}, Protected: []string{"/Users/ann/w/secret"}, Network: protocol.Network{Mode: protocol.NetOff}, Scratch: protocol.ScratchTmpfs}
	sc, err := explain.New(p, f, nil)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := explainer{}.argv(task{policy: p}, sc)
	if err != nil {
		t.Fatal(err)
	}
	if len(doc.Bwrap) > 0 || !strings.HasPrefix(doc.Profile, "(version 1)") || !strings.Contains(strings.Join(doc.Parameters, " "), "/Users/ann/w/secret") || doc.Assumed == "" {
		t.Errorf("got %+v", doc)
	}
	if a := sc.At("/Users/ann/w/secret"); a.Read || a.Write || a.Decider.List != "protected" {
		t.Errorf("got %+v", a)
	}
}
