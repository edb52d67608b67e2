package protocol

import (
	"math"
	"reflect"
	"testing"

	"pgregory.net/rapid"
)

// streamFrame draws a frame of a kind that decodeStream takes, as it is sent.
func streamFrame(t *rapid.T) []byte {
	data := make([]byte, rapid.SampledFrom([]int{0, 1, 255, 256, 300, 65535, 65536}).Draw(t, "bytes"))
	number := rapid.OneOf(rapid.Uint64(), rapid.SampledFrom([]uint64{1, 127, 128, 255, 256, 65535, 65536, math.MaxUint32, math.MaxUint64}))
	var body Body = ExecStdin{Data: data, EOF: rapid.Bool().Draw(t, "eof")}
	if rapid.Bool().Draw(t, "out") {
		body = ExecOut{Stream: rapid.SampledFrom([]Stream{Stdout, Stderr}).Draw(t, "stream"), Data: data,
			Bytes: number.Draw(t, "count"), Truncated: rapid.Bool().Draw(t, "truncated")}
	}
	b, err := AppendFrame(nil, max(1, number.Draw(t, "id")), body)
	if err != nil {
		t.Fatal(err)
	}
	return b[prefixSize:]
}

// What is sent is decoded the quick way, and gives what the strict reader gives.
func TestStreamsAreDecodedQuickly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := streamFrame(t)
		quick, ok := decodeStream(b)
		strict, err := decodeStrictly(b)
		if !ok || err != nil || !reflect.DeepEqual(quick, strict) {
			t.Fatalf("quick %v, strict %v", ok, err)
		}
	})
}

// Bytes that are changed, missing or too many never come through where the strict reader
// takes them for something else, or for nothing.
func TestQuickIsAsStrict(t *testing.T) {
	same := 0
	rapid.Check(t, func(t *rapid.T) {
		b := streamFrame(t)
		near := rapid.IntRange(0, min(len(b), 80)-1).Draw(t, "at")
		at := rapid.SampledFrom([]int{near, len(b) - 1 - near}).Draw(t, "from")
		switch rapid.IntRange(0, 3).Draw(t, "change") {
		case 0:
			b[at] = rapid.Byte().Draw(t, "byte")
		case 1:
			b = append(b[:at], b[at+1:]...)
		case 2:
			b = append(b[:at+1], b[at:]...)
		case 3:
			b = b[:at]
		}
		quick, ok := decodeStream(b)
		if !ok {
			return
		}
		same++
		if strict, err := decodeStrictly(b); err != nil || !reflect.DeepEqual(quick, strict) {
			t.Fatalf("%x: quick %v, strict %v, %v", b[:min(len(b), 80)], quick.Kind, strict.Kind, err)
		}
	})
	if same == 0 {
		t.Error("every change was left to the strict reader")
	}
}

func TestStreamsAllocateOnlyTheirBody(t *testing.T) {
	for _, body := range []Body{ExecOut{Stream: Stderr, Data: make([]byte, 65536), Bytes: math.MaxUint64}, ExecStdin{Data: make([]byte, 65536)}} {
		b, _ := AppendFrame(nil, 1, body)
		if n := testing.AllocsPerRun(100, func() { _, _ = DecodeFrame(b[prefixSize:]) }); n > 1 {
			t.Errorf("%s: %v allocations", body.Kind(), n)
		}
	}
}
