package protocol

import "sandboxd/internal/mpack"

// decodeStream decodes the two kinds that carry a stream, with their keys in the order in
// which they are sent. It says false for anything else, right or wrong: that is for the
// strict reader, which costs some twenty allocations.
func decodeStream(b []byte) (f Frame, ok bool) {
	s := mpack.NewScan(b)
	s.Expect("\x84\xa1v\x01\xa2id")
	f.ID = s.Uint()
	switch s.Expect("\xa4kind"); {
	case s.Has("\xa8exec_out\xa4body\x84\xa6stream"):
		f.Kind, f.Body = KindExecOut, scanExecOut(&s)
	case s.Has("\xaaexec_stdin\xa4body\x82\xa4data"):
		in := ExecStdin{Data: s.Take(s.BinLen())}
		s.Expect("\xa3eof")
		in.EOF = s.Bool()
		f.Kind, f.Body = KindExecStdin, in
	}
	return f, f.Body != nil && f.ID != 0 && s.Done()
}

func scanExecOut(s *mpack.Scan) (o ExecOut) {
	if o.Stream = Stdout; !s.Has("\xa6stdout") {
		o.Stream = Stderr
		s.Expect("\xa6stderr")
	}
	s.Expect("\xa4data")
	o.Data = s.Take(s.BinLen())
	s.Expect("\xa5bytes")
	o.Bytes = s.Uint()
	s.Expect("\xa9truncated")
	o.Truncated = s.Bool()
	return o
}
