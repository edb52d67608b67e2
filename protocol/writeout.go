package protocol

import (
	"encoding/binary"

	"sandboxd/internal/mpack"
)

// outRoom is more than an exec_out has around its data, in bytes.
const outRoom = 128

// WriteOut is Write for output. The data is not copied where the destination is a
// VectorWriter.
func (w *Writer) WriteOut(id uint64, o *ExecOut) error {
	if w.vec == nil || id == 0 || len(o.Data) > MaxFrame-outRoom {
		return w.Write(id, o)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return w.err
	}
	if cap(w.buf) < outRoom {
		w.buf = make([]byte, 0, outRoom) // does not grow below, for the pieces lie in it
	}
	b := o.appendHead(appendEnvelope(append(w.buf[:0], 0, 0, 0, 0), id, KindExecOut))
	head := len(b)
	b = o.appendTail(b)
	binary.BigEndian.PutUint32(b, uint32(len(b)-prefixSize+len(o.Data)))
	w.pieces = append(w.pieces[:0], b[:head], o.Data, b[head:])
	err := w.vec.WriteVector(w.pieces)
	clear(w.pieces)
	return w.wrote(err, KindExecOut)
}

// appendHead writes the body up to its data.
func (o *ExecOut) appendHead(b []byte) []byte {
	b = mpack.AppendMap(b, 4)
	b = mpack.AppendStr(mpack.AppendStr(b, "stream"), string(o.Stream))
	return mpack.AppendBinHeader(mpack.AppendStr(b, "data"), len(o.Data))
}

// appendTail writes the body behind its data.
func (o *ExecOut) appendTail(b []byte) []byte {
	b = mpack.AppendUint(mpack.AppendStr(b, "bytes"), o.Bytes)
	return mpack.AppendBool(mpack.AppendStr(b, "truncated"), o.Truncated)
}
