package mpack

import (
	"bytes"
	"encoding/hex"
	"testing"

	"github.com/vmihailenco/msgpack/v5"
	"pgregory.net/rapid"
)

func TestAppendIsSmallest(t *testing.T) {
	for _, tc := range []struct {
		got  []byte
		want string
	}{
		{AppendUint(nil, 0), "00"},
		{AppendUint(nil, 127), "7f"},
		{AppendUint(nil, 128), "cc80"},
		{AppendUint(nil, 256), "cd0100"},
		{AppendUint(nil, 65536), "ce00010000"},
		{AppendUint(nil, 1<<32), "cf0000000100000000"},
		{AppendInt(nil, 5), "05"},
		{AppendInt(nil, 200), "ccc8"},
		{AppendInt(nil, -1), "ff"},
		{AppendInt(nil, -32), "e0"},
		{AppendInt(nil, -33), "d0df"},
		{AppendInt(nil, -129), "d1ff7f"},
		{AppendInt(nil, -32769), "d2ffff7fff"},
		{AppendInt(nil, -1<<31-1), "d3ffffffff7fffffff"},
		{AppendBool(AppendBool(nil, true), false), "c3c2"},
		{AppendStrMap(nil, map[string]string{"b": "1", "a": ""}), "82a161a0a162a131"},
		{AppendStrs(nil, nil), "90"},
		{AppendBin(nil, nil), "c400"},
	} {
		if got := hex.EncodeToString(tc.got); got != tc.want {
			t.Errorf("got %s, want %s", got, tc.want)
		}
	}
	for _, tc := range []struct {
		n                   int
		str, bin, arr, mapp string
	}{
		{15, "af", "c40f", "9f", "8f"},
		{16, "b0", "c410", "dc0010", "de0010"},
		{32, "d920", "c420", "dc0020", "de0020"},
		{256, "da0100", "c50100", "dc0100", "de0100"},
		{65536, "db00010000", "c600010000", "dd00010000", "df00010000"},
	} {
		data := bytes.Repeat([]byte("x"), tc.n)
		for what, got := range map[string][2]string{
			"str":   {hex.EncodeToString(AppendStr(nil, string(data))[:len(tc.str)/2]), tc.str},
			"bin":   {hex.EncodeToString(AppendBin(nil, data)[:len(tc.bin)/2]), tc.bin},
			"array": {hex.EncodeToString(AppendArray(nil, tc.n)), tc.arr},
			"map":   {hex.EncodeToString(AppendMap(nil, tc.n)), tc.mapp},
		} {
			if got[0] != got[1] {
				t.Errorf("%s of %d: got header %s, want %s", what, tc.n, got[0], got[1])
			}
		}
	}
}

// What we write is what we read, and an independent implementation reads the same.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		u := rapid.Uint64().Draw(t, "u")
		i := rapid.Int64().Draw(t, "i")
		s := rapid.String().Draw(t, "s")
		d := rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "d")
		m := rapid.MapOf(rapid.String(), rapid.String()).Draw(t, "m")

		b := AppendBin(AppendStr(AppendInt(AppendUint(nil, u), i), s), d)
		b = AppendStrMap(b, m)
		r := NewReader(b)
		gu, e1 := r.Uint()
		gi, e2 := r.Int()
		gs, e3 := r.Str()
		gd, e4 := r.Bin()
		gm, e5 := r.StrMap(nil)
		for _, err := range []error{e1, e2, e3, e4, e5, r.End()} {
			if err != nil {
				t.Fatal(err)
			}
		}
		if gu != u || gi != i || gs != s || !bytes.Equal(gd, d) || len(gm) != len(m) {
			t.Fatalf("got %d %d %q %x %v", gu, gi, gs, gd, gm)
		}
		other := msgpack.NewDecoder(bytes.NewReader(b))
		if ou, err := other.DecodeUint64(); err != nil || ou != u {
			t.Fatalf("other reader: %d, %v, want %d", ou, err, u)
		}
		if oi, err := other.DecodeInt64(); err != nil || oi != i {
			t.Fatalf("other reader: %d, %v, want %d", oi, err, i)
		}
		if os, err := other.DecodeString(); err != nil || os != s {
			t.Fatalf("other reader: %q, %v, want %q", os, err, s)
		}
	})
}
