//go:build linux || darwin

package jail

// buffers keeps some for the next execution. A sync.Pool would lose them at each
// collection, which is every few executions.
type buffers struct {
	free chan []byte
	size int // of one, in bytes
}

func newBuffers(most, size int) buffers { return buffers{make(chan []byte, most), size} }

func (b buffers) get() []byte {
	select {
	case buf := <-b.free:
		return buf
	default:
		return make([]byte, b.size)
	}
}

func (b buffers) put(buf []byte) {
	select {
	case b.free <- buf:
	default:
	}
}
