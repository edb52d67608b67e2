package mpack

import (
	"errors"
	"maps"
	"slices"
	"testing"
)

type pair struct {
	A    uint64
	List []string
	Opt  bool
}

func readPair(r *Reader) (p pair, err error) {
	err = r.Object([]Field{
		{Name: "a", Read: func(r *Reader) (err error) { p.A, err = r.Uint(); return }},
		{Name: "list", Read: func(r *Reader) (err error) { p.List, err = r.Strs(); return }},
		{Name: "opt", Optional: true, Read: func(r *Reader) (err error) { p.Opt, err = r.Bool(); return }},
	})
	return p, err
}

func TestObject(t *testing.T) {
	for _, in := range []string{
		"82 a161 01 a46c697374 91a178",
		"82 a46c697374 91a178 a161 d001",
		"de0002 a161 01 d9046c697374 dc0001 a178",
	} {
		p, err := readPair(NewReader(unhex(t, in)))
		if err != nil || p.A != 1 || !slices.Equal(p.List, []string{"x"}) || p.Opt {
			t.Errorf("%s: got %+v, %v", in, p, err)
		}
	}
	p, err := readPair(NewReader(unhex(t, "83 a161 01 a3 6f7074 c3 a46c697374 90")))
	if err != nil || !p.Opt {
		t.Errorf("optional key: got %+v, %v", p, err)
	}
}

func TestObjectRefuses(t *testing.T) {
	for _, tc := range []struct{ in, want string }{
		{"c0", "found nil, expected map"},
		{"80", "a: missing key"},
		{"81 a161 01", "list: missing key"},
		{"82 a161 01 a162 01", "b: unknown key"},
		{"82 a161 01 a161 01", "a: duplicate key"},
		{"82 a161 01 01 01", "found integer, expected string"},
		{"82 a161 01 c40161 01", "found binary, expected string"},
		{"82 a161 ff a46c697374 90", "a: found negative integer, expected unsigned integer"},
		{"82 a161 01 a46c697374 92a178c0", "list[1]: found nil, expected string"},
		{"81 a3 0a2e22 00", `"\n.\"": unknown key`},
		{"81 a0 00", `"": unknown key`},
	} {
		_, err := readPair(NewReader(unhex(t, tc.in)))
		var e *Error
		if !errors.As(err, &e) || err.Error() != tc.want {
			t.Errorf("%s: got %v, want %s", tc.in, err, tc.want)
		}
	}
}

func TestForeignErrorGetsThePath(t *testing.T) {
	r := NewReader(unhex(t, "81 a161 91 01"))
	err := r.Object([]Field{{Name: "a", Read: func(r *Reader) error {
		return r.Each(func(int) error { return errors.New("no good") })
	}}})
	var e *Error
	if !errors.As(err, &e) || e.Path != "a[0]" || e.Msg != "no good" {
		t.Fatalf("got %v", err)
	}
}

func TestStrMap(t *testing.T) {
	m, err := NewReader(unhex(t, "82 a162 a131 a161 a0")).StrMap(nil)
	if err != nil || !maps.Equal(m, map[string]string{"a": "", "b": "1"}) {
		t.Fatalf("got %v, %v", m, err)
	}
	for _, tc := range []struct{ in, want string }{
		{"82 a161 a0 a161 a0", "a: duplicate key"},
		{"81 a161 c0", "a: found nil, expected string"},
		{"81 c0 a0", "found nil, expected string"},
	} {
		if _, err := NewReader(unhex(t, tc.in)).StrMap(nil); err == nil || err.Error() != tc.want {
			t.Errorf("%s: got %v, want %s", tc.in, err, tc.want)
		}
	}
}

func TestEachCountsDepth(t *testing.T) {
	in := make([]byte, 0, MaxDepth+2)
	for range MaxDepth + 1 {
		in = append(in, 0x91)
	}
	in = append(in, 0xc0)
	r := NewReader(in)
	var down func(int) error
	down = func(int) error { return r.Each(down) }
	err := r.Each(down)
	if err == nil || !errors.As(err, new(*Error)) || err.(*Error).Msg != "found nesting deeper than 16" {
		t.Fatalf("got %v", err)
	}
}

func TestLongKeysAreCut(t *testing.T) {
	key := make([]byte, 300)
	for i := range key {
		key[i] = 'k'
	}
	in := append(AppendStr(AppendMap(nil, 1), string(key)), 0xc0)
	_, err := readPair(NewReader(in))
	if err == nil || len(err.Error()) > maxKey+30 {
		t.Fatalf("got %v", err)
	}
}
