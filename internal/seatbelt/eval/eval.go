package eval

import (
	"fmt"
	"strings"
)

// Query is one thing that a process asks of the kernel.
type Query struct {
	Op        string // "file-read-data", "network-outbound", ...
	Path      string // of the file, or of the Unix socket
	Type      string // of the vnode, for (vnode-type ...): "REGULAR-FILE", ...
	Socket    string // "unix" or "ip", of a network operation
	Domain    string // "AF_UNIX", ... of system-socket
	Name      string // of the Mach service or the sysctl
	Foreign   bool   // the target is a process outside the sandbox
	Extension string // that the process holds for Path, "" for none
}

// Profile is one that was read.
type Profile struct {
	rules []rule
	deny  bool // the default
}

type rule struct {
	allow   bool
	ops     []string
	filters []filter
	line    string
}

type filter func(Query) bool

// New reads a profile and binds its parameters. What this package does not know is
// an error, and so is a parameter without a value.
func New(text string, params map[string]string) (Profile, error) {
	nodes, err := parse(text)
	if err != nil {
		return Profile{}, fmt.Errorf("cannot read the profile: %w", err)
	}
	if len(nodes) < 2 || show(nodes[0]) != "(version 1)" {
		return Profile{}, fmt.Errorf("cannot read the profile: it does not begin with (version 1)")
	}
	p := Profile{}
	for _, n := range nodes[1:] {
		if err := p.add(n, params); err != nil {
			return Profile{}, fmt.Errorf("cannot read %s: %w", show(n), err)
		}
	}
	if !p.deny {
		return Profile{}, fmt.Errorf("cannot use the profile: its default is not to deny")
	}
	return p, nil
}

func (p *Profile) add(n node, params map[string]string) error {
	if !n.isList || len(n.list) < 2 || n.list[0].isList {
		return fmt.Errorf("expected (allow ...) or (deny ...)")
	}
	r := rule{line: show(n)}
	switch n.list[0].text {
	case "allow":
		r.allow = true
	case "deny":
	default:
		return fmt.Errorf("%q is not known here", n.list[0].text)
	}
	rest := n.list[1:]
	for len(rest) > 0 && !rest[0].isList {
		if !known(rest[0].text) {
			return fmt.Errorf("the operation %q is not known", rest[0].text)
		}
		r.ops, rest = append(r.ops, rest[0].text), rest[1:]
	}
	for _, f := range rest {
		match, err := compile(f, params)
		if err != nil {
			return err
		}
		r.filters = append(r.filters, match)
	}
	if len(r.ops) == 1 && r.ops[0] == "default" {
		p.deny = !r.allow
		return nil
	}
	p.rules = append(p.rules, r)
	return nil
}

// Allows says whether q is allowed: the last rule that matches decides.
func (p Profile) Allows(q Query) bool {
	yes, _ := p.Why(q)
	return yes
}

// Why is Allows with the rule that decided, "" for the default.
func (p Profile) Why(q Query) (bool, string) {
	for i := len(p.rules) - 1; i >= 0; i-- {
		if r := p.rules[i]; r.covers(q.Op) && r.matches(q) {
			return r.allow, r.line
		}
	}
	return !p.deny, ""
}

// Read and Write are what most tests ask about a file.
func (p Profile) Read(path string) bool { return p.Allows(Query{Op: "file-read-data", Path: path}) }

// Write asks for changing the contents.
func (p Profile) Write(path string) bool { return p.Allows(Query{Op: "file-write-data", Path: path}) }

func (r rule) covers(op string) bool {
	for _, o := range r.ops {
		if prefix, ok := strings.CutSuffix(o, "*"); o == op || ok && strings.HasPrefix(op, prefix) {
			return true
		}
	}
	return false
}

func (r rule) matches(q Query) bool {
	for _, f := range r.filters {
		if f(q) {
			return true
		}
	}
	return len(r.filters) == 0
}

func show(n node) string {
	switch {
	case n.quoted:
		return fmt.Sprintf("%q", n.text)
	case !n.isList:
		return n.text
	}
	parts := make([]string, len(n.list))
	for i, sub := range n.list {
		parts[i] = show(sub)
	}
	return "(" + strings.Join(parts, " ") + ")"
}
