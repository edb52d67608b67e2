package protocol

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"sandboxd/internal/mpack"
)

// loosen copies one canonical value with keys in a random order and headers and
// integers in random widths: all that a strict decoder must still accept.
func loosen(t *rapid.T, r *mpack.Reader, raw []byte) []byte {
	switch c := raw[0]; {
	case c>>4 == 8 || c == 0xde:
		n, _ := r.Map()
		pairs := make([][]byte, n)
		for i := range pairs {
			pairs[i] = append(next(t, r), next(t, r)...)
		}
		out := wide(t, 0xdf, uint64(n), mpack.AppendMap(nil, n))
		return append(out, bytes.Join(rapid.Permutation(pairs).Draw(t, "order"), nil)...)
	case c>>4 == 9 || c == 0xdc:
		n, _ := r.Array()
		out := wide(t, 0xdd, uint64(n), mpack.AppendArray(nil, n))
		for range n {
			out = append(out, next(t, r)...)
		}
		return out
	case c>>5 == 5 || c == 0xd9 || c == 0xda:
		s, _ := r.Str()
		canonical := mpack.AppendStr(nil, s)
		return append(wide(t, 0xdb, uint64(len(s)), canonical[:len(canonical)-len(s)]), s...)
	case c < 0x80 || c >= 0xcc && c <= 0xcf:
		v, _ := r.Uint()
		code := byte(0xcf)
		if v < 1<<63 && rapid.Bool().Draw(t, "signed") {
			code = 0xd3
		}
		if rapid.Bool().Draw(t, "wide") {
			return binary.BigEndian.AppendUint64([]byte{code}, v)
		}
		return mpack.AppendUint(nil, v)
	}
	out, _ := r.Raw()
	return out
}

// next loosens the value that comes next.
func next(t *rapid.T, r *mpack.Reader) []byte {
	raw, err := r.Raw()
	if err != nil {
		t.Fatal(err)
	}
	return loosen(t, mpack.NewReader(raw), raw)
}

func wide(t *rapid.T, code byte, n uint64, canonical []byte) []byte {
	if rapid.Bool().Draw(t, "wide") {
		return binary.BigEndian.AppendUint32([]byte{code}, uint32(n))
	}
	return bytes.Clone(canonical)
}

func anyBody(t *rapid.T) Body {
	text := rapid.StringMatching(`[a-zü/ ]{0,40}`)
	n := rapid.Uint64()
	flag := rapid.Bool()
	data := rapid.SliceOfN(rapid.Byte(), 0, 300)
	list := rapid.SliceOfN(text, 0, 20)
	code := rapid.Int32()
	switch rapid.IntRange(0, 5).Draw(t, "kind") {
	case 0:
		return Hello{ExecVersion, text.Draw(t, "peer"), list.Draw(t, "features")}
	case 1:
		env := rapid.MapOf(rapid.StringMatching(`[A-Z_]{1,4}`), text).Draw(t, "env")
		return ExecStart{append([]string{"x"}, list.Draw(t, "argv")...), env, "/" + text.Draw(t, "cwd"), append(data.Draw(t, "token"), 0), nil, nil}
	case 2:
		return ExecStdin{data.Draw(t, "data"), flag.Draw(t, "eof")}
	case 3:
		return ExecOut{rapid.SampledFrom([]Stream{Stdout, Stderr}).Draw(t, "stream"), data.Draw(t, "data"), n.Draw(t, "bytes"), flag.Draw(t, "cut")}
	case 4:
		return ExecExit{
			int(code.Draw(t, "code")), int(code.Draw(t, "signal")), n.Draw(t, "out"), n.Draw(t, "err"), flag.Draw(t, "outcut"), flag.Draw(t, "errcut"),
			list.Draw(t, "enforcement"), flag.Draw(t, "degraded"), n.Draw(t, "wall"), flag.Draw(t, "timed"), flag.Draw(t, "cancelled"),
		}
	}
	return ErrorBody{CodeRefused, text.Draw(t, "msg")}
}

// However its peer spells a value, a decoder gets the same one.
func TestLooseSpellingsDecodeAlike(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		body := anyBody(t)
		want, err := AppendFrame(nil, 1+rapid.Uint64Range(0, 1<<63).Draw(t, "id"), body)
		if err != nil {
			t.Fatal(err)
		}
		f, err := DecodeFrame(next(t, mpack.NewReader(want[prefixSize:])))
		if err != nil {
			t.Fatal(err)
		}
		got, err := AppendFrame(nil, f.ID, f.Body)
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("got %x, %v, want %x", got, err, want)
		}
		// As text, in which a nil and an empty list are the same.
		if g, w := fmt.Sprintf("%+v", f.Body), fmt.Sprintf("%+v", body); g != w {
			t.Fatalf("got %s, want %s", g, w)
		}
	})
}

// No frame survives the loss of any byte, nor a byte more.
func TestEveryCutIsRefused(t *testing.T) {
	for _, body := range bodies() {
		b, err := AppendFrame(nil, 1, body)
		if err != nil {
			t.Fatal(err)
		}
		b = b[prefixSize:]
		if _, err := DecodeFrame(b); err != nil {
			t.Fatalf("whole %s: %v", body.Kind(), err)
		}
		for n := range b {
			if _, err := DecodeFrame(b[:n]); err == nil {
				t.Errorf("%s cut to %d bytes is accepted", body.Kind(), n)
			}
		}
		if _, err := DecodeFrame(append(b, 0xc0)); err == nil {
			t.Errorf("%s with a byte more is accepted", body.Kind())
		}
	}
}
