package mpack

import (
	"bytes"
	"errors"
	"runtime/metrics"
	"testing"
)

// allocated is how many bytes this process has ever allocated.
func allocated() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

// slack is for what the test itself and the runtime allocate meanwhile. What it
// must not hide are allocations of a claimed size: 4 GiB from five bytes.
const slack = 4 << 20

func FuzzReader(f *testing.F) {
	for _, s := range []string{
		"\x00", "\xcc\xff", "\xcf\xff\xff\xff\xff\xff\xff\xff\xff", "\xd3\x80\x00\x00\x00\x00\x00\x00\x00", "\xa1a", "\xdb\xff\xff\xff\xff",
		"\xc4\x00", "\xc6\xff\xff\xff\xff", "\x80", "\xdf\xff\xff\xff\xff", "\xdd\xff\xff\xff\xff", "\x82\xa1a\x01\xa4list\x91\xa1x",
		"\xc7\x01\x05\xff", "\xc1", "\xca\x00\x00\x00\x00", "\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\xc0",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		before := allocated()
		for _, typ := range []string{"uint", "int", "str", "bin", "bool", "map", "array", "raw", "rawmap"} {
			r := NewReader(b)
			_, err := as(r, typ)
			if err != nil && !errors.As(err, new(*Error)) {
				t.Errorf("%s: error of another type: %v", typ, err)
			}
			if r.Remaining() < 0 || r.Remaining() > len(b) {
				t.Errorf("%s: %d bytes left of %d", typ, r.Remaining(), len(b))
			}
		}
		if _, err := readPair(NewReader(b)); err != nil && !errors.As(err, new(*Error)) {
			t.Errorf("object: error of another type: %v", err)
		}
		if grown := allocated() - before; grown > slack+64*uint64(len(b)) {
			t.Errorf("%d bytes of input made %d bytes of allocations", len(b), grown)
		}
		again(t, b)
	})
}

// again writes what was read, canonically, and reads that.
func again(t *testing.T, b []byte) {
	if u, err := NewReader(b).Uint(); err == nil {
		if v, err := NewReader(AppendUint(nil, u)).Uint(); err != nil || v != u {
			t.Errorf("%d came back as %d, %v", u, v, err)
		}
	}
	if i, err := NewReader(b).Int(); err == nil {
		if v, err := NewReader(AppendInt(nil, i)).Int(); err != nil || v != i {
			t.Errorf("%d came back as %d, %v", i, v, err)
		}
	}
	if s, err := NewReader(b).Str(); err == nil {
		if v, err := NewReader(AppendStr(nil, s)).Str(); err != nil || v != s {
			t.Errorf("%q came back as %q, %v", s, v, err)
		}
	}
	if m, err := NewReader(b).StrMap(nil); err == nil {
		one := AppendStrMap(nil, m)
		v, err := NewReader(one).StrMap(nil)
		if err != nil || !bytes.Equal(AppendStrMap(nil, v), one) {
			t.Errorf("%q came back as %q, %v", m, v, err)
		}
	}
	if raw, err := NewReader(b).Raw(); err == nil && !bytes.HasPrefix(b, raw) {
		t.Errorf("raw value %x is not the beginning of %x", raw, b)
	}
}
