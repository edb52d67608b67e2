package protocol

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"runtime/metrics"
	"testing"
	"testing/iotest"
)

// allocated is how many bytes this process has ever allocated.
func allocated() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

// slack is for what the test itself and the runtime allocate meanwhile. What it
// must not hide are allocations of a claimed size.
const slack = 4 << 20

// golden gives the golden frames, length prefix included.
func golden(f *testing.F) [][]byte {
	names, err := filepath.Glob("fixtures/frame/*.bin")
	if err != nil || len(names) < 50 {
		f.Fatalf("%d golden frames, %v", len(names), err)
	}
	var all [][]byte
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		all = append(all, b)
	}
	return all
}

func FuzzDecodeFrame(f *testing.F) {
	for _, b := range golden(f) {
		f.Add(b[min(len(b), prefixSize):])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		before := allocated()
		frame, err := DecodeFrame(b)
		if grown := allocated() - before; grown > slack+64*uint64(len(b)) {
			t.Errorf("%d bytes of input made %d bytes of allocations", len(b), grown)
		}
		if quick, ok := decodeStream(b); ok {
			if strict, err := decodeStrictly(b); err != nil || !reflect.DeepEqual(quick, strict) {
				t.Errorf("the strict reader gives %v, %v", strict.Kind, err)
			}
		}
		if err != nil {
			checkError(t, frame, err)
			return
		}
		if frame.Body == nil {
			return
		}
		one, err := AppendFrame(nil, frame.ID, frame.Body)
		if err != nil {
			t.Fatalf("decoded and not encodable: %v", err)
		}
		// Canonical is smallest: no other spelling of the same value is shorter. Of
		// another version's hello not all keys need to have been there.
		h, isHello := frame.Body.(Hello)
		if whole := !isHello || h.Proto == ExecVersion; whole && len(one)-prefixSize > len(b) {
			t.Errorf("canonical has %d bytes, the input %d", len(one)-prefixSize, len(b))
		}
		same, err := DecodeFrame(one[prefixSize:])
		if err != nil {
			t.Fatalf("encoded and not decodable: %v", err)
		}
		two, _ := AppendFrame(nil, same.ID, same.Body)
		if !bytes.Equal(one, two) {
			t.Errorf("%x came back as %x", one, two)
		}
	})
}

func checkError(t *testing.T, frame Frame, err error) {
	t.Helper()
	var bad *DecodeError
	if !errors.As(err, &bad) {
		t.Fatalf("error of another type: %v", err)
	}
	if frame.Body != nil {
		t.Errorf("a body beside the error %v", err)
	}
	if bad.Fatal && (bad.ID != 0 || frame != Frame{}) || !bad.Fatal && (bad.ID != frame.ID || bad.Kind != frame.Kind || bad.Kind == "") {
		t.Errorf("frame %d %q beside %+v", frame.ID, frame.Kind, bad)
	}
}

func FuzzStream(f *testing.F) {
	var all []byte
	for _, b := range golden(f) {
		f.Add(b)
		all = append(all, b...)
	}
	f.Add(all[:4<<10])
	f.Add([]byte{1, 0, 0, 0, 0x84})
	f.Fuzz(func(t *testing.T, b []byte) {
		before := allocated()
		whole, err := drain(NewReader(bytes.NewReader(b)), len(b))
		if grown := allocated() - before; grown > slack+64*uint64(len(b)) {
			t.Errorf("%d bytes of input made %d bytes of allocations", len(b), grown)
		}
		split, err2 := drain(NewReader(iotest.OneByteReader(bytes.NewReader(b))), len(b))
		if !bytes.Equal(whole, split) || err.Error() != err2.Error() {
			t.Errorf("how the bytes arrive matters: %v and %v", err, err2)
		}
		if errors.Is(err, io.ErrNoProgress) {
			t.Error("the stream never ends")
		}
	})
}

// drain reads to the sticky error and encodes again what it read.
func drain(r *Reader, most int) (out []byte, err error) {
	for range most/prefixSize + 2 {
		f, err := r.Next()
		var bad *DecodeError
		switch {
		case errors.As(err, &bad) && !bad.Fatal:
			out = append(out, bad.Error()...)
		case err != nil:
			if _, again := r.Next(); again != err {
				return nil, errors.New("the error is not sticky")
			}
			return out, err
		case f.Body != nil:
			out, _ = AppendFrame(out, f.ID, f.Body)
		}
	}
	return nil, io.ErrNoProgress
}
