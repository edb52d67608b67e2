package eval

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// operations are the names that may stand in a rule. A name that the kernel's
// compiler does not know makes it refuse the whole profile, so a typing error must
// fail here as well.
var operations = []string{
	"default", "file*", "file-read*", "file-read-data", "file-read-metadata", "file-map-executable", "file-ioctl", "file-link",
	"file-write*", "file-write-data", "file-write-create", "file-write-unlink",
	"process-exec*", "process-exec", "process-fork", "process-info*", "signal", "sysctl-read",
	"ipc-posix-sem", "ipc-posix-shm*", "mach-lookup", "mach-host*", "mach-host-exception-port-set", "mach-host-special-port-set",
	"network*", "network-bind", "network-inbound", "network-outbound", "system-socket", "pseudo-tty",
}

func known(op string) bool { return slices.Contains(operations, op) }

// compile turns one filter into a function.
func compile(n node, params map[string]string) (filter, error) {
	if !n.isList || len(n.list) == 0 || n.list[0].isList {
		return nil, fmt.Errorf("expected a filter, found %s", show(n))
	}
	name, args := n.list[0].text, n.list[1:]
	switch name {
	case "require-all", "require-any", "require-not":
		return combine(name, args, params)
	case "remote", "local":
		return peer(args, params)
	case "target":
		return func(q Query) bool { return !q.Foreign }, want(args, "same-sandbox")
	}
	if len(args) != 1 {
		return nil, fmt.Errorf("%s takes one argument", name)
	}
	arg, err := value(args[0], params)
	if err != nil {
		return nil, err
	}
	return simple(name, arg)
}

// simple are the filters with one value.
func simple(name, arg string) (filter, error) {
	switch name {
	case "literal":
		return func(q Query) bool { return q.Path == arg }, nil
	case "subpath":
		return func(q Query) bool { return arg == "/" || q.Path == arg || strings.HasPrefix(q.Path, arg+"/") }, nil
	case "regex":
		re, err := regexp.Compile(arg)
		if err != nil {
			return nil, err
		}
		return func(q Query) bool { return re.MatchString(q.Path) }, nil
	case "vnode-type":
		return func(q Query) bool { return q.Type == arg }, nil
	case "extension":
		return func(q Query) bool { return q.Extension == arg }, nil
	case "socket-domain":
		return func(q Query) bool { return q.Domain == arg }, nil
	case "global-name":
		return func(q Query) bool { return q.Name == arg }, nil
	case "sysctl-name-prefix":
		return func(q Query) bool { return strings.HasPrefix(q.Name, arg) }, nil
	}
	return nil, fmt.Errorf("the filter %q is not known", name)
}

func combine(name string, args []node, params map[string]string) (filter, error) {
	var subs []filter
	for _, a := range args {
		f, err := compile(a, params)
		if err != nil {
			return nil, err
		}
		subs = append(subs, f)
	}
	matches := func(want bool) func(Query) bool {
		return func(q Query) bool {
			return slices.ContainsFunc(subs, func(f filter) bool { return f(q) == want })
		}
	}
	switch {
	case len(subs) == 0:
		return nil, fmt.Errorf("%s of nothing", name)
	case name == "require-any":
		return matches(true), nil
	case name == "require-all":
		some := matches(false)
		return func(q Query) bool { return !some(q) }, nil
	}
	some := matches(true)
	return func(q Query) bool { return !some(q) }, nil
}

// peer is (remote ip), (local ip), or the path of a Unix socket. Which end is meant
// follows from the operation, so both are one here.
func peer(args []node, params map[string]string) (filter, error) {
	if len(args) == 0 || args[0].isList {
		return nil, fmt.Errorf("expected a kind of socket")
	}
	switch kind := args[0].text; kind {
	case "ip":
		return func(q Query) bool { return q.Socket == "ip" }, want(args, "ip")
	case "unix-socket":
		if len(args) != 2 {
			return nil, fmt.Errorf("expected the path of a unix-socket")
		}
		f, err := compile(args[1], params)
		return func(q Query) bool { return q.Socket == "unix" && f(q) }, err
	}
	return nil, fmt.Errorf("the kind of socket %q is not known", args[0].text)
}

func want(args []node, text string) error {
	if len(args) != 1 || args[0].isList || args[0].text != text {
		return fmt.Errorf("expected %s", text)
	}
	return nil
}

// value is a string, a name, or a parameter's value.
func value(n node, params map[string]string) (string, error) {
	if !n.isList {
		return n.text, nil
	}
	if len(n.list) != 2 || n.list[0].text != "param" || !n.list[1].quoted {
		return "", fmt.Errorf("expected a value, found %s", show(n))
	}
	v, ok := params[n.list[1].text]
	if !ok {
		return "", fmt.Errorf("the parameter %q has no value", n.list[1].text)
	}
	return v, nil
}
