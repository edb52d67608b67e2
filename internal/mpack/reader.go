package mpack

import (
	"bytes"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/vmihailenco/msgpack/v5"
	"github.com/vmihailenco/msgpack/v5/msgpcode"
)

// Reader pulls values from one input. The zero value reads nothing; use NewReader.
// After an error the position is undefined: give up.
type Reader struct {
	buf   []byte
	src   bytes.Reader
	dec   *msgpack.Decoder
	path  []segment
	depth int // containers entered by Object, Each and StrMap
}

// NewReader reads from b, which must not change while values alias it.
func NewReader(b []byte) *Reader {
	r := &Reader{buf: b}
	r.src.Reset(b)
	// bytes.Reader scans bytes itself, so the decoder adds no buffer of its own
	// and src's position stays the truth about what was consumed.
	r.dec = msgpack.NewDecoder(&r.src)
	return r
}

// Remaining is the number of bytes not yet read.
func (r *Reader) Remaining() int { return r.src.Len() }

// Fail makes an error at the current key path.
func (r *Reader) Fail(format string, args ...any) error {
	return &Error{Path: renderPath(r.path), Msg: fmt.Sprintf(format, args...)}
}

// End is an error unless the input has been read to its end.
func (r *Reader) End() error {
	if n := r.Remaining(); n != 0 {
		return r.Fail("found bytes behind it (%d), expected the end", n)
	}
	return nil
}

// Map reads a map's header and gives its number of entries. Prefer Object.
func (r *Reader) Map() (int, error) {
	c, err := r.expect(famMap, "map")
	if err != nil {
		return 0, err
	}
	return r.count(c, 2)
}

// Array reads an array's header and gives its length. Prefer Each.
func (r *Reader) Array() (int, error) {
	c, err := r.expect(famArray, "array")
	if err != nil {
		return 0, err
	}
	return r.count(c, 1)
}

// Str reads a string, which must be valid UTF-8.
func (r *Reader) Str() (string, error) {
	b, err := r.text()
	return string(b), err
}

// Bin reads binary data. The result aliases the input and has no spare capacity.
func (r *Reader) Bin() ([]byte, error) {
	if _, err := r.expect(famBin, "binary"); err != nil {
		return nil, err
	}
	return r.bytes("binary")
}

// Bool reads a boolean.
func (r *Reader) Bool() (bool, error) {
	if _, err := r.expect(famBool, "boolean"); err != nil {
		return false, err
	}
	v, err := r.dec.DecodeBool()
	return v, r.cut(err)
}

// Uint reads an unsigned integer. A signed encoding of one is accepted.
func (r *Reader) Uint() (uint64, error) {
	c, err := r.expect(famInt, "unsigned integer")
	if err != nil {
		return 0, err
	}
	if !signed(c) {
		v, err := r.dec.DecodeUint64()
		return v, r.cut(err)
	}
	v, err := r.dec.DecodeInt64()
	if err != nil {
		return 0, r.cut(err)
	}
	if v < 0 {
		return 0, r.Fail("found negative integer, expected unsigned integer")
	}
	return uint64(v), nil
}

// Int reads an integer that fits in 64 bits with a sign.
func (r *Reader) Int() (int64, error) {
	c, err := r.expect(famInt, "integer")
	if err != nil {
		return 0, err
	}
	v, err := r.dec.DecodeInt64()
	if err != nil {
		return 0, r.cut(err)
	}
	// A uint64 above the signed range comes out of the primitive negative.
	if c == msgpcode.Uint64 && v < 0 {
		return 0, r.Fail("found integer above 9223372036854775807, expected signed 64-bit integer")
	}
	return v, nil
}

// text reads a string's bytes, aliasing the input.
func (r *Reader) text() ([]byte, error) {
	if _, err := r.expect(famStr, "string"); err != nil {
		return nil, err
	}
	b, err := r.bytes("string")
	if err == nil && !utf8.Valid(b) {
		return nil, r.Fail("found invalid UTF-8, expected UTF-8 string")
	}
	return b, err
}

// expect looks at the next value's first byte without reading it.
func (r *Reader) expect(want family, name string) (byte, error) {
	c, err := r.dec.PeekCode()
	if err != nil {
		return 0, r.Fail("found end of input, expected %s", name)
	}
	if got := familyOf(c); got != want {
		return 0, r.Fail("found %s, expected %s", got, name)
	}
	return c, nil
}

// count reads a container's header: each entry takes at least size bytes.
func (r *Reader) count(c byte, size int) (int, error) {
	n, err := r.rawCount(c, size)
	if err == nil && n > MaxEntries {
		err = r.Fail("found %d entries, expected at most %d", n, MaxEntries)
	}
	if err != nil {
		return 0, err
	}
	return n, nil
}

func (r *Reader) rawCount(c byte, size int) (n int, err error) {
	if familyOf(c) == famMap {
		n, err = r.dec.DecodeMapLen()
	} else {
		n, err = r.dec.DecodeArrayLen()
	}
	if err != nil {
		return 0, r.cut(err)
	}
	if n < 0 || n > r.Remaining()/size {
		return 0, r.Fail("found %s of %d entries, which do not fit in the %d bytes left", familyOf(c), n, r.Remaining())
	}
	return n, nil
}

// bytes reads the header and content of a string or binary.
func (r *Reader) bytes(name string) ([]byte, error) {
	n, err := r.dec.DecodeBytesLen()
	if err != nil {
		return nil, r.cut(err)
	}
	return r.take(n, name)
}

// take gives the next n bytes of the input without copying them.
func (r *Reader) take(n int, name string) ([]byte, error) {
	if n < 0 || n > r.Remaining() {
		return nil, r.Fail("found %s of %d bytes, which do not fit in the %d bytes left", name, n, r.Remaining())
	}
	at := len(r.buf) - r.Remaining()
	if _, err := r.src.Seek(int64(n), io.SeekCurrent); err != nil {
		return nil, r.Fail("cannot move to the end of the %s: %v", name, err)
	}
	return r.buf[at : at+n : at+n], nil
}

// cut turns a primitive's error into ours: its type was checked before, so only
// the end of the input is left as a cause.
func (r *Reader) cut(err error) error {
	if err == nil {
		return nil
	}
	return r.Fail("found end of input inside a value")
}
