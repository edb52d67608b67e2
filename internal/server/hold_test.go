package server

import (
	"bytes"
	"io"
	"testing"

	"sandboxd/internal/jail"
	"sandboxd/protocol"
)

// What is held stays as it came while later frames are read, and little input holds
// little memory.
func TestHeldInputStays(t *testing.T) {
	sizes := []int{0, 10, bigInput - 1, bigInput, 30 << 10, 60 << 10, 1 << 20, 20 << 10, 512 << 10, 1, 70 << 10}
	var stream []byte
	for i, n := range sizes {
		stream, _ = protocol.AppendFrame(stream, 1, protocol.ExecStdin{Data: bytes.Repeat([]byte{byte(i + 1)}, n)})
	}
	l := &loop{in: protocol.NewReader(bytes.NewReader(stream))}
	var held []jail.Input
	taken := 0
	for {
		f, err := l.in.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		in := l.hold(f.Body.(protocol.ExecStdin).Data)
		if in.Buffer != nil {
			taken++
		}
		held = append(held, in)
	}
	for i, in := range held {
		if !bytes.Equal(in.Data, bytes.Repeat([]byte{byte(i + 1)}, sizes[i])) {
			t.Errorf("input %d of %d bytes has changed", i, sizes[i])
		}
		if most := max(2*len(in.Data), 64); cap(in.Data) > most || cap(in.Buffer) > most {
			t.Errorf("%d bytes hold %d and %d", len(in.Data), cap(in.Data), cap(in.Buffer))
		}
	}
	if len(held) != len(sizes) || taken == 0 {
		t.Errorf("%d inputs, %d buffers taken along", len(held), taken)
	}
}
