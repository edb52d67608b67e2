package eval_test

import (
	"strings"
	"testing"

	"sandboxd/internal/seatbelt/eval"
)

const head = "(version 1)(deny default)"

func read(t *testing.T, text string, params map[string]string) eval.Profile {
	t.Helper()
	p, err := eval.New(text, params)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestFilters(t *testing.T) {
	file := func(path string) eval.Query { return eval.Query{Op: "file-read-data", Path: path} }
	for _, c := range []struct {
		name, rules string
		q           eval.Query
		want        bool
	}{
		{"default", "", file("/a"), false},
		{"literal", `(allow file-read* (literal "/a"))`, file("/a"), true},
		{"literal is not below", `(allow file-read* (literal "/a"))`, file("/a/b"), false},
		{"subpath", `(allow file-read* (subpath "/a"))`, file("/a/b/c"), true},
		{"subpath is itself", `(allow file-read* (subpath "/a"))`, file("/a"), true},
		{"subpath ends at a component", `(allow file-read* (subpath "/a"))`, file("/ab"), false},
		{"subpath of all", `(allow file-read* (subpath "/"))`, file("/x"), true},
		{"regex", `(allow file-read* (regex #"^/dev/ttys[0-9]+$"))`, file("/dev/ttys12"), true},
		{"regex keeps its backslash", `(allow file-read* (regex #"^/a\.b$"))`, file("/axb"), false},
		{"any of the filters", `(allow file-read* (literal "/a") (literal "/b"))`, file("/b"), true},
		{"require-all", `(allow file-read* (require-all (subpath "/a") (vnode-type DIRECTORY)))`, file("/a/b"), false},
		{"vnode-type", `(allow file-read* (require-all (subpath "/a") (vnode-type DIRECTORY)))`, eval.Query{Op: "file-read-data", Path: "/a/b", Type: "DIRECTORY"}, true},
		{"require-any", `(allow file-read* (require-any (literal "/a") (literal "/b")))`, file("/b"), true},
		{"require-not", `(allow file-read* (require-not (literal "/a")))`, file("/a"), false},
		{"param", `(allow file-read* (subpath (param "P0")))`, file("/from/param/x"), true},
		{"last wins, deny", `(allow file-read* (subpath "/a"))(deny file-read* (literal "/a/b"))`, file("/a/b"), false},
		{"last wins, allow", `(deny file-read* (literal "/a/b"))(allow file-read* (subpath "/a"))`, file("/a/b"), true},
		{"another operation", `(allow file-read* (subpath "/a"))(deny file-write* (subpath "/a"))`, file("/a"), true},
		{"no filter is everywhere", `(allow file-read*)`, file("/q"), true},
		{"comment", "; (allow file-read*)\n", file("/q"), false},
		{"unix socket", `(allow network-outbound (remote unix-socket (subpath "/a")))`, eval.Query{Op: "network-outbound", Socket: "unix", Path: "/a/s"}, true},
		{"not ip", `(allow network-outbound (remote unix-socket (subpath "/")))`, eval.Query{Op: "network-outbound", Socket: "ip"}, false},
		{"ip", `(allow network-outbound (remote ip))`, eval.Query{Op: "network-outbound", Socket: "ip"}, true},
		{"own processes", `(allow signal (target same-sandbox))`, eval.Query{Op: "signal"}, true},
		{"others' processes", `(allow signal (target same-sandbox))`, eval.Query{Op: "signal", Foreign: true}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := read(t, head+c.rules, map[string]string{"P0": "/from/param"}).Allows(c.q); got != c.want {
				t.Errorf("allowed = %t, want %t", got, c.want)
			}
		})
	}
}

func TestWhatIsNotKnownIsAnError(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"(deny default)", "version"},
		{"(version 1)(allow default)", "default"},
		{head + `(allow file-reed* (literal "/a"))`, "file-reed*"},
		{head + `(allow file-read* (prefix "/a"))`, "prefix"},
		{head + `(allow file-read* (literal (param "NONE")))`, "NONE"},
		{head + `(allow file-read* (literal "/a")`, "missing"},
		{head + `(allow file-read* (literal "/a)`, "no end"},
		{head + `)`, "too many"},
		{head + `(import "system.sb")`, "import"},
		{head + `(allow file-read* (regex "["))`, "regexp"},
		{head + `(allow signal (target others))`, "same-sandbox"},
	} {
		if _, err := eval.New(c.text, nil); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", c.text, err, c.want)
		}
	}
}
