package roots

import (
	"encoding/binary"
	"testing"

	"sandboxd/internal/host"
)

func TestRespelled(t *testing.T) {
	for _, c := range []struct {
		what, parent, name, kernel, want string
	}{
		{"as asked", "/Users/u", "ws", "/Users/u/ws", ""},
		{"below the root", "/", "Users", "/Users", ""},
		{"letter case", "/Users/u", "WS", "/Users/u/ws", "/Users/u/ws"},
		{"Unicode form", "/Users", "Ame\u0301lie", "/Users/Am\u00e9lie", "/Users/Am\u00e9lie"},
		{"firmlink", "/System/Volumes/Data", "Users", "/Users", "/Users"},
	} {
		n, ok := respelledDir(c.parent, c.name, c.kernel)
		if ok != (c.want != "") || n.Target != c.want || ok && (n.Kind != host.Link || !n.Respelled) {
			t.Errorf("%s: %+v, %t; want %q", c.what, n, ok, c.want)
		}
	}
	for _, c := range []struct {
		what, name, disk string
		nlink            uint64
		want             string
	}{
		{"as asked", ".env", ".env", 1, ""},
		{"letter case", ".ENV", ".env", 1, ".env"},
		{"letter case of one with two names", ".ENV", ".env", 2, ".env"},
		{"the other name of one with two", "b", "a", 2, ""},
		{"Unicode form", "e\u0301", "\u00e9", 1, "\u00e9"},
		{"no name", "a", "", 1, ""},
		{"a path", "a", "../a", 1, ""},
		{"the parent", "a", "..", 1, ""},
	} {
		n, ok := respelledName(c.name, c.disk, host.Node{Kind: host.File, Nlink: c.nlink})
		if ok != (c.want != "") || n.Target != c.want || ok && (n.Kind != host.Link || !n.Respelled) {
			t.Errorf("%s: %+v, %t; want %q", c.what, n, ok, c.want)
		}
	}
}

// answer is what the kernel writes for a name.
func answer(total, offset, length uint32, rest string) []byte {
	b := binary.NativeEndian.AppendUint32(nil, total)
	b = binary.NativeEndian.AppendUint32(b, offset)
	b = binary.NativeEndian.AppendUint32(b, length)
	return append(b, rest...)
}

func TestNameAttribute(t *testing.T) {
	for _, c := range []struct {
		what string
		b    []byte
		want string // "" for an error
	}{
		{"a name", answer(20, 8, 5, ".env\x00\x00\x00\x00"), ".env"},
		{"a buffer that is larger", answer(17, 8, 5, ".env\x00 left over"), ".env"},
		{"nothing", nil, ""},
		{"too short", answer(12, 8, 5, "")[:11], ""},
		{"beyond the answer", answer(14, 8, 5, ".env\x00"), ""},
		{"beyond the buffer", answer(40, 8, 28, ".env\x00"), ""},
		{"before itself", answer(17, 0xfffffff8, 5, ".env\x00"), ""},
		{"a length that overflows", answer(17, 8, 0xffffffff, ".env\x00"), ""},
		{"no end", answer(16, 8, 4, ".env"), ""},
		{"empty", answer(14, 8, 2, "\x00\x00"), ""},
	} {
		if got, err := nameAttribute(c.b); got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s: %q, %v; want %q", c.what, got, err, c.want)
		}
	}
}
