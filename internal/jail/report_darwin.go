package jail

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"sandboxd/internal/stage2/spec"
)

// receive reads one message of the stream behind fd 4, or errEndOfReport once stage 2
// has executed the command or died.
func receive(r io.Reader) (spec.Message, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); errors.Is(err, io.EOF) {
		return spec.Message{}, errEndOfReport
	} else if err != nil {
		return spec.Message{}, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n == 0 || n > spec.MaxMessage {
		return spec.Message{}, fmt.Errorf("a message of %d bytes on fd 4", n)
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(r, b); err != nil {
		return spec.Message{}, fmt.Errorf("a message on fd 4 is cut short: %w", err)
	}
	return spec.DecodeMessage(b)
}
