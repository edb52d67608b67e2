package procfs

import (
	"bytes"
	"strings"
	"testing"
)

func line(name string) []byte {
	return []byte("7 (" + name + ") S 3 7 7 34817 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 4242 9 9\n")
}

func TestParseStat(t *testing.T) {
	for _, name := range []string{"sh", "a b", ") S 1 (", "", "x)\n(y", "((", "))"} {
		s, err := ParseStat(line(name))
		if err != nil || string(s.Comm) != name || s.PPID != 3 || s.Start != 4242 || s.Terminal != 34817 || s.State != 'S' {
			t.Errorf("%q: got %+v %v", name, s, err)
		}
	}
	start := bytes.Index(line("sh"), []byte(" 4242"))
	for _, bad := range []string{
		"", "7 sh S 3", "7 (sh) S", "7 )sh( S 3", "7 (sh) S x" + string(line("sh")[10:]), // not a number
		string(line("sh")[:start]), strings.Replace(string(line("sh")), "4242", "-1", 1),
	} {
		if s, err := ParseStat([]byte(bad)); err == nil {
			t.Errorf("%q was taken: %+v", bad, s)
		}
	}
}

func TestParseStatAllocatesNothing(t *testing.T) {
	b := line("a name")
	if n := testing.AllocsPerRun(100, func() { _, _ = ParseStat(b) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add(line(") S 1 ("))
	f.Add([]byte("7 (sh) S"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if s, err := ParseStat(b); err == nil && !bytes.Contains(b, append(append([]byte("("), s.Comm...), ')')) {
			t.Errorf("%q: name %q", b, s.Comm)
		}
	})
}

// escape is what the kernel does.
var escape = strings.NewReplacer("\\", "\\134", " ", "\\040", "\t", "\\011", "\n", "\\012", "#", "\\043")

func TestUnescape(t *testing.T) {
	for _, path := range []string{"", "/", "/a b", "\\", "/a\\040", "#\t\n", "/\xff"} {
		if got, ok := Unescape(escape.Replace(path)); !ok || got != path {
			t.Errorf("%q becomes %q, %v", path, got, ok)
		}
	}
	for _, bad := range []string{`\`, `/a\04`, `\9`, `\089`, `\777`, `\400`, `\+40`} {
		if got, ok := Unescape(bad); ok {
			t.Errorf("%q was taken: %q", bad, got)
		}
	}
}
