package protocol

import (
	"encoding/binary"
	"errors"
	"fmt"

	"sandboxd/internal/mpack"
)

// prefixSize is the length prefix, a big-endian u32.
const prefixSize = 4

// DecodeError says that bytes of the peer are not what the protocol allows. It
// never holds a value that came, only names of keys.
type DecodeError struct {
	ID    uint64 // of the frame; 0 where Fatal
	Kind  Kind   // of the frame; "" where Fatal
	Fatal bool   // a malformed frame: answer once under id 0 and close the channel
	Path  string // key path, in the body, or in the frame where Fatal; may be ""
	Msg   string // what was found and what was expected
	cause error  // of the transport
}

// Error gives "cannot decode exec_start: argv[0]: found nil, expected string".
func (e *DecodeError) Error() string {
	what := "frame"
	if !e.Fatal {
		what = string(e.Kind)
	}
	if e.Path != "" {
		return "cannot decode " + what + ": " + e.Path + ": " + e.Msg
	}
	return "cannot decode " + what + ": " + e.Msg
}

// Unwrap gives the transport's error, for instance io.ErrUnexpectedEOF.
func (e *DecodeError) Unwrap() error { return e.cause }

// AppendFrame appends a whole frame, length prefix included. It fails on a body
// that makes the frame larger than MaxFrame and on id 0 outside an error; dst is
// then returned as it was.
func AppendFrame(dst []byte, id uint64, body Body) ([]byte, error) {
	if id == 0 && body.Kind() != KindError {
		return dst, fmt.Errorf("cannot encode %s: id 0 belongs to an error about a malformed frame; use another id", body.Kind())
	}
	start := len(dst)
	b := append(dst, 0, 0, 0, 0)
	b = body.Append(appendEnvelope(b, id, body.Kind()))
	n := len(b) - start - prefixSize
	if n > MaxFrame {
		return dst, fmt.Errorf("cannot encode %s: the frame has %d bytes and the limit is %d; send less in one frame", body.Kind(), n, MaxFrame)
	}
	binary.BigEndian.PutUint32(b[start:], uint32(n))
	return b, nil
}

// appendEnvelope writes a frame's map up to the body.
func appendEnvelope(b []byte, id uint64, kind Kind) []byte {
	b = mpack.AppendMap(b, 4)
	b = mpack.AppendUint(mpack.AppendStr(b, "v"), EnvelopeVersion)
	b = mpack.AppendUint(mpack.AppendStr(b, "id"), id)
	b = mpack.AppendStr(mpack.AppendStr(b, "kind"), string(kind))
	return mpack.AppendStr(b, "body")
}

// DecodeFrame decodes one frame's map, the length prefix already taken off. Body
// holds a value (Hello, not *Hello). ExecStdin.Data and ExecOut.Data alias b;
// everything else is copied.
//
// Its error is a *DecodeError. Fatal: the frame itself is malformed (not a map of
// exactly v, id, kind and body, another v, id 0 outside an error, a body that is
// not a map, bytes that are not well-formed msgpack). Not fatal: the frame is well
// formed, its kind known and the body wrong; the Frame then has ID and Kind. A kind
// that is not known is no error: Body is nil.
func DecodeFrame(b []byte) (Frame, error) {
	if f, ok := decodeStream(b); ok {
		return f, nil
	}
	return decodeStrictly(b)
}

func decodeStrictly(b []byte) (Frame, error) {
	f, raw, err := decodeEnvelope(b)
	if err != nil {
		return Frame{}, decodeFailure(err, DecodeError{Fatal: true})
	}
	f.Body, err = decodeBody(f.Kind, raw)
	if err != nil {
		f.Body = nil
		return f, decodeFailure(err, DecodeError{ID: f.ID, Kind: f.Kind})
	}
	return f, nil
}

func decodeEnvelope(b []byte) (f Frame, body []byte, err error) {
	r := mpack.NewReader(b)
	err = r.Object([]mpack.Field{
		{Name: "v", Read: readEnvelopeVersion},
		uintField("id", &f.ID),
		{Name: "kind", Read: func(r *mpack.Reader) error {
			s, err := r.Str()
			f.Kind = Kind(s)
			return err
		}},
		{Name: "body", Read: func(r *mpack.Reader) (err error) { body, err = r.RawMap(); return err }},
	})
	if err == nil {
		err = r.End()
	}
	if err == nil && f.ID == 0 && f.Kind != KindError {
		err = &mpack.Error{Path: "id", Msg: "found 0, which only an error may have"}
	}
	return f, body, err
}

func readEnvelopeVersion(r *mpack.Reader) error {
	v, err := r.Uint()
	if err == nil && v != EnvelopeVersion {
		err = r.Fail("found envelope version %d, expected %d", v, EnvelopeVersion)
	}
	return err
}

func decodeFailure(err error, e DecodeError) error {
	var m *mpack.Error
	if errors.As(err, &m) {
		e.Path, e.Msg = m.Path, m.Msg
	} else {
		e.Msg = err.Error()
	}
	return &e
}
