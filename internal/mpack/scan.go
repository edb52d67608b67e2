package mpack

import "encoding/binary"

// Scan takes values off the front of bytes that are expected to have one known form.
// It allocates nothing and explains nothing: once something else is there, Done and all
// that is read later fail, and a Reader has to say what is wrong, if anything is.
type Scan struct {
	rest []byte
	bad  bool
}

// NewScan begins at the front of b, which results alias.
func NewScan(b []byte) Scan { return Scan{rest: b} }

// Rest is what has not been taken.
func (s *Scan) Rest() []byte { return s.rest }

// OK says whether everything so far was as expected.
func (s *Scan) OK() bool { return !s.bad }

// Done says whether everything was as expected, to the end.
func (s *Scan) Done() bool { return !s.bad && len(s.rest) == 0 }

// Has takes these bytes if they are next.
func (s *Scan) Has(next string) bool {
	if s.bad || len(s.rest) < len(next) || string(s.rest[:len(next)]) != next {
		return false
	}
	s.rest = s.rest[len(next):]
	return true
}

// Expect takes these bytes.
func (s *Scan) Expect(next string) { s.bad = !s.Has(next) }

// Take takes n bytes. The result has no spare capacity.
func (s *Scan) Take(n int) []byte {
	if s.bad || uint(n) > uint(len(s.rest)) {
		s.bad = true
		return nil
	}
	b := s.rest[:n:n]
	s.rest = s.rest[n:]
	return b
}

// Uint takes an unsigned integer that is encoded without a sign.
func (s *Scan) Uint() uint64 {
	b := s.Take(1)
	switch {
	case s.bad:
		return 0
	case b[0] < 0x80:
		return uint64(b[0])
	case b[0] >= 0xcc && b[0] <= 0xcf:
		return s.bigEndian(1 << (b[0] - 0xcc))
	}
	s.bad = true
	return 0
}

// BinLen takes the header of binary data and gives the data's length.
func (s *Scan) BinLen() int {
	if b := s.Take(1); !s.bad && b[0] >= 0xc4 && b[0] <= 0xc6 {
		return int(s.bigEndian(1 << (b[0] - 0xc4)))
	}
	s.bad = true
	return 0
}

// Bool takes a boolean.
func (s *Scan) Bool() bool {
	if s.Has("\xc3") {
		return true
	}
	s.Expect("\xc2")
	return false
}

func (s *Scan) bigEndian(width int) uint64 {
	var word [8]byte
	copy(word[len(word)-width:], s.Take(width))
	return binary.BigEndian.Uint64(word[:])
}
