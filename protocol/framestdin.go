package protocol

import (
	"encoding/binary"

	"sandboxd/internal/mpack"
)

// StdinRoom is what FrameStdin needs in front of the data, and more than it needs
// behind it, in bytes.
const StdinRoom = 64

// FrameStdin makes an exec_stdin frame around data that lies at buf[StdinRoom:], n
// bytes of it, without moving it. buf has StdinRoom bytes more behind the data. The
// frame is a part of buf.
func FrameStdin(buf []byte, id uint64, n int, eof bool) []byte {
	var room [StdinRoom]byte
	head := appendEnvelope(append(room[:0], 0, 0, 0, 0), id, KindExecStdin)
	head = mpack.AppendStr(mpack.AppendMap(head, 2), "data")
	head = mpack.AppendBinHeader(head, n)
	end := StdinRoom + n
	tail := mpack.AppendBool(mpack.AppendStr(buf[end:end], "eof"), eof)
	binary.BigEndian.PutUint32(head, uint32(len(head)-prefixSize+n+len(tail)))
	at := StdinRoom - len(head)
	copy(buf[at:], head)
	return buf[at : end+len(tail)]
}
