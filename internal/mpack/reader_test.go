package mpack

import (
	"encoding/hex"
	"strings"
	"testing"
)

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// as reads one value of the type that a case names.
func as(r *Reader, typ string) (got any, err error) {
	switch typ {
	case "uint":
		got, err = r.Uint()
	case "int":
		got, err = r.Int()
	case "str":
		got, err = r.Str()
	case "bin":
		var b []byte
		b, err = r.Bin()
		got = string(b)
	case "bool":
		got, err = r.Bool()
	case "map":
		got, err = r.Map()
	case "array":
		got, err = r.Array()
	case "raw":
		var b []byte
		b, err = r.Raw()
		got = hex.EncodeToString(b)
	case "rawmap":
		_, err = r.RawMap()
	}
	return got, err
}

func TestPrimitives(t *testing.T) {
	for _, tc := range []struct {
		in, typ string
		want    any
	}{
		{"00", "uint", uint64(0)},
		{"7f", "uint", uint64(127)},
		{"ccff", "uint", uint64(255)},
		{"cdffff", "uint", uint64(65535)},
		{"ceffffffff", "uint", uint64(4294967295)},
		{"cfffffffffffffffff", "uint", ^uint64(0)},
		{"d001", "uint", uint64(1)},
		{"d300000000000000 2a", "uint", uint64(42)},
		{"cf000000000000002a", "uint", uint64(42)},
		{"ff", "int", int64(-1)},
		{"d080", "int", int64(-128)},
		{"d18000", "int", int64(-32768)},
		{"d280000000", "int", int64(-2147483648)},
		{"d38000000000000000", "int", int64(-9223372036854775808)},
		{"cf7fffffffffffffff", "int", int64(9223372036854775807)},
		{"ccff", "int", int64(255)},
		{"a161", "str", "a"},
		{"d90161", "str", "a"},
		{"db00000001 61", "str", "a"},
		{"c400", "bin", ""},
		{"c60000000161", "bin", "a"},
		{"c3", "bool", true},
		{"80", "map", 0},
		{"df0000000100c0", "map", 1},
		{"91c0", "array", 1},
		{"c70105ff", "raw", "c70105ff"},
		{"d405ff", "raw", "d405ff"},
		{"cb3ff0000000000000", "raw", "cb3ff0000000000000"},
		{"82 c0c0 90 81a16101", "raw", "82c0c09081a16101"},
	} {
		r := NewReader(unhex(t, tc.in))
		got, err := as(r, tc.typ)
		if err != nil || got != tc.want {
			t.Errorf("%s as %s: got %v, %v, want %v", tc.in, tc.typ, got, err, tc.want)
		}
	}
}

func TestPrimitivesRefuse(t *testing.T) {
	for _, tc := range []struct{ in, typ, want string }{
		{"", "uint", "found end of input, expected unsigned integer"},
		{"c0", "uint", "found nil, expected unsigned integer"},
		{"ca3f800000", "uint", "found float, expected unsigned integer"},
		{"ff", "uint", "found negative integer, expected unsigned integer"},
		{"d3ffffffffffffffff", "uint", "found negative integer, expected unsigned integer"},
		{"cd00", "uint", "found end of input inside a value"},
		{"c3", "uint", "found boolean, expected unsigned integer"},
		{"cf8000000000000000", "int", "found integer above 9223372036854775807, expected signed 64-bit integer"},
		{"c0", "int", "found nil, expected integer"},
		{"c0", "str", "found nil, expected string"},
		{"c40161", "str", "found binary, expected string"},
		{"a1ff", "str", "found invalid UTF-8, expected UTF-8 string"},
		{"a3eda080", "str", "found invalid UTF-8, expected UTF-8 string"}, // a lone surrogate
		{"db7fffffff", "str", "found string of 2147483647 bytes, which do not fit in the 0 bytes left"},
		{"dbffffffff61", "str", "found string of 4294967295 bytes, which do not fit in the 1 bytes left"},
		{"a161", "bin", "found string, expected binary"},
		{"c6ffffffff", "bin", "found binary of 4294967295 bytes, which do not fit in the 0 bytes left"},
		{"c0", "bin", "found nil, expected binary"},
		{"00", "bool", "found integer, expected boolean"},
		{"c0", "bool", "found nil, expected boolean"},
		{"c0", "map", "found nil, expected map"},
		{"90", "map", "found array, expected map"},
		{"d40580", "map", "found extension, expected map"},
		{"dfffffffff", "map", "found map of 4294967295 entries, which do not fit in the 0 bytes left"},
		{"8100", "map", "found map of 1 entries, which do not fit in the 1 bytes left"},
		{"ddffffffff00", "array", "found array of 4294967295 entries, which do not fit in the 1 bytes left"},
		{"80", "array", "found map, expected array"},
		{"c1", "array", "found invalid byte 0xc1, expected array"},
		{"c1", "raw", "found invalid byte 0xc1, expected a value"},
		{"c8ffff05", "raw", "found extension of 65535 bytes, which do not fit in the 0 bytes left"},
		{"c7", "raw", "found end of input inside a value"},
		{"cb00", "raw", "found float of 9 bytes, which do not fit in the 2 bytes left"},
		{"91a1ff", "raw", "found invalid UTF-8, expected UTF-8 string"},
		{strings.Repeat("91", 17) + "c0", "raw", "found nesting deeper than 16"},
		{strings.Repeat("81c0", 17) + "c0", "raw", "found nesting deeper than 16"},
		{"9100", "rawmap", "found array, expected map"},
	} {
		_, err := as(NewReader(unhex(t, tc.in)), tc.typ)
		if err == nil || err.Error() != tc.want {
			t.Errorf("%s as %s: got error %v, want %s", tc.in, tc.typ, err, tc.want)
		}
	}
}

func TestRawDepthLimitIsReached(t *testing.T) {
	in := unhex(t, strings.Repeat("91", MaxDepth)+"c0")
	got, err := NewReader(in).Raw()
	if err != nil || len(got) != len(in) {
		t.Fatalf("%d levels: got %x, %v", MaxDepth, got, err)
	}
}

// Levels entered with Object and Each count as well, so that a value cannot be
// nested deeper by being read in parts.
func TestRawDepthCountsFromTheOutside(t *testing.T) {
	in := unhex(t, "91"+strings.Repeat("91", MaxDepth)+"c0")
	r := NewReader(in)
	err := r.Each(func(int) error { _, err := r.Raw(); return err })
	if err == nil || err.Error() != "[0]: found nesting deeper than 16" {
		t.Fatalf("got %v", err)
	}
}

func TestEntriesAreBounded(t *testing.T) {
	in := append(AppendArray(nil, MaxEntries+1), make([]byte, MaxEntries+1)...)
	if _, err := NewReader(in).Array(); err == nil || err.Error() != "found 262145 entries, expected at most 262144" {
		t.Fatalf("one too many: got %v", err)
	}
	in = append(AppendArray(nil, MaxEntries), make([]byte, MaxEntries)...)
	if n, err := NewReader(in).Array(); err != nil || n != MaxEntries {
		t.Fatalf("the most: got %d, %v", n, err)
	}
}

func TestBinAliasesWithoutSpareCapacity(t *testing.T) {
	in := unhex(t, "c40161 c3")
	r := NewReader(in)
	b, err := r.Bin()
	if err != nil || len(b) != 1 || cap(b) != 1 || &b[0] != &in[2] {
		t.Fatalf("got %q cap %d, %v", b, cap(b), err)
	}
	if r.Remaining() != 1 {
		t.Fatalf("remaining %d, want 1", r.Remaining())
	}
	if err := r.End(); err == nil || err.Error() != "found bytes behind it (1), expected the end" {
		t.Fatalf("End: %v", err)
	}
}
