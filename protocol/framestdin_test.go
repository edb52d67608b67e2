package protocol

import (
	"bytes"
	"math"
	"testing"
)

// FrameStdin gives the bytes that AppendFrame gives.
func TestFrameStdinIsAppendFrame(t *testing.T) {
	for _, id := range []uint64{1, 127, 128, math.MaxUint64} {
		for _, n := range []int{0, 1, 255, 256, 65535, 65536, 1 << 20} {
			for _, eof := range []bool{false, true} {
				buf := make([]byte, n+2*StdinRoom)
				data := buf[StdinRoom:][:n]
				for i := range data {
					data[i] = byte(i * 7)
				}
				want, err := AppendFrame(nil, id, ExecStdin{Data: bytes.Clone(data), EOF: eof})
				if err != nil {
					t.Fatal(err)
				}
				if got := FrameStdin(buf, id, n, eof); !bytes.Equal(got, want) {
					t.Errorf("id %d, %d bytes, eof %v: other bytes", id, n, eof)
				}
			}
		}
	}
}
