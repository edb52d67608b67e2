package protocol

import (
	"math"
	"strings"

	"sandboxd/internal/mpack"
)

// decodeBody reads the body of a known kind and nothing after it. The result is
// nil for a kind that this version does not know.
func decodeBody(kind Kind, raw []byte) (Body, error) {
	r := mpack.NewReader(raw)
	switch kind {
	case KindHello:
		return decodeHello(r, raw)
	case KindExecStart:
		return decodeExecStart(r)
	case KindExecStdin:
		return decodeExecStdin(r)
	case KindExecOut:
		return decodeExecOut(r)
	case KindExecExit:
		return decodeExecExit(r)
	case KindCancel:
		return Cancel{}, r.Object(nil)
	case KindShutdown:
		return Shutdown{}, r.Object(nil)
	case KindHeartbeat:
		return Heartbeat{}, r.Object(nil)
	case KindError:
		return decodeError(r)
	}
	return nil, nil
}

// decodeHello judges the version before the keys: another version has others, and
// an unknown key would hide what is really wrong. The Hello then has only Proto.
func decodeHello(r *mpack.Reader, raw []byte) (h Hello, err error) {
	if proto, ok := peekProto(raw); ok && proto != ExecVersion {
		return Hello{Proto: proto}, nil
	}
	err = r.Object([]mpack.Field{uintField("proto", &h.Proto), strField("peer", &h.Peer), strsField("features", &h.Features)})
	return h, err
}

// peekProto finds the first "proto" of a hello, whatever else is in it.
func peekProto(raw []byte) (proto uint64, ok bool) {
	r := mpack.NewReader(raw)
	n, err := r.Map()
	if err != nil {
		return 0, false
	}
	for range n {
		key, err := r.Raw()
		if err != nil {
			break
		}
		if name, err := mpack.NewReader(key).Str(); err == nil && name == "proto" {
			proto, err := r.Uint()
			return proto, err == nil
		}
		if _, err := r.Raw(); err != nil {
			break
		}
	}
	return 0, false
}

// decodeExecStart copies what it takes, so the result outlives the input. Strings
// that execve(2) could not carry are refused here: a NUL would cut them short.
func decodeExecStart(r *mpack.Reader) (s ExecStart, err error) {
	err = r.Object([]mpack.Field{
		{Name: "argv", Read: s.readArgv},
		{Name: "env", Read: s.readEnv},
		{Name: "cwd", Read: s.readCwd},
		{Name: "token", Read: s.readToken},
		mapField("policy", &s.Policy),
		mapField("limits", &s.Limits),
	})
	return s, err
}

func (s *ExecStart) readArgv(r *mpack.Reader) error {
	s.Argv = []string{}
	err := r.Each(func(int) error {
		arg, err := r.Str()
		if err == nil && hasNUL(arg) {
			err = r.Fail("found NUL, expected string without it")
		}
		s.Argv = append(s.Argv, arg)
		return err
	})
	if err == nil && len(s.Argv) == 0 {
		err = r.Fail("found empty array, expected at least the program's name")
	}
	return err
}

func (s *ExecStart) readEnv(r *mpack.Reader) (err error) {
	s.Env, err = r.StrMap(func(name, value string) error {
		switch {
		case name == "":
			return r.Fail("found empty name, expected variable name")
		case strings.ContainsAny(name, "=\x00"):
			return r.Fail("found '=' or NUL in the name, expected variable name")
		case hasNUL(value):
			return r.Fail("found NUL, expected string without it")
		}
		return nil
	})
	return err
}

// maxPath is PATH_MAX of Linux less the terminating NUL, in bytes.
const maxPath = 4095

func (s *ExecStart) readCwd(r *mpack.Reader) (err error) {
	s.Cwd, err = r.Str()
	switch {
	case err != nil:
		return err
	case !strings.HasPrefix(s.Cwd, "/"):
		return r.Fail("found relative or empty path, expected absolute path")
	case hasNUL(s.Cwd):
		return r.Fail("found NUL, expected path without it")
	case len(s.Cwd) > maxPath:
		return r.Fail("found a path of %d bytes, expected at most %d", len(s.Cwd), maxPath)
	}
	return nil
}

func (s *ExecStart) readToken(r *mpack.Reader) error {
	token, err := r.Bin()
	if err == nil && len(token) == 0 {
		err = r.Fail("found empty binary, expected at least one byte")
	}
	s.Token = clone(token)
	return err
}

func decodeExecStdin(r *mpack.Reader) (s ExecStdin, err error) {
	err = r.Object([]mpack.Field{binField("data", &s.Data), boolField("eof", &s.EOF)})
	return s, err
}

func decodeExecOut(r *mpack.Reader) (o ExecOut, err error) {
	stream := func(r *mpack.Reader) error {
		s, err := r.Str()
		o.Stream = Stream(s)
		if err == nil && o.Stream != Stdout && o.Stream != Stderr {
			err = r.Fail(`found another string, expected "stdout" or "stderr"`)
		}
		return err
	}
	err = r.Object([]mpack.Field{
		{Name: "stream", Read: stream}, binField("data", &o.Data), uintField("bytes", &o.Bytes), boolField("truncated", &o.Truncated),
	})
	return o, err
}

func decodeExecExit(r *mpack.Reader) (e ExecExit, err error) {
	err = r.Object([]mpack.Field{
		intField("code", &e.Code),
		intField("signal", &e.Signal),
		uintField("stdout_bytes", &e.StdoutBytes),
		uintField("stderr_bytes", &e.StderrBytes),
		boolField("stdout_truncated", &e.StdoutTruncated),
		boolField("stderr_truncated", &e.StderrTruncated),
		strsField("enforcement", &e.Enforcement),
		boolField("degraded", &e.Degraded),
		uintField("wall_ms", &e.WallMS),
		boolField("timed_out", &e.TimedOut),
		boolField("cancelled", &e.Cancelled),
	})
	return e, err
}

func decodeError(r *mpack.Reader) (e ErrorBody, err error) {
	code := func(r *mpack.Reader) error {
		s, err := r.Str()
		e.Code = Code(s)
		if err == nil && !e.Code.Known() {
			err = r.Fail("found an unknown code, expected one of protocol version %d", ExecVersion)
		}
		return err
	}
	err = r.Object([]mpack.Field{{Name: "code", Read: code}, strField("msg", &e.Msg)})
	return e, err
}

// Known says whether the code belongs to this version of the protocol.
func (c Code) Known() bool {
	switch c {
	case CodeMalformedFrame, CodeProtoMismatch, CodeUnknownKind, CodeBusy,
		CodeNoExec, CodeBadPolicy, CodeRefused, CodeSpawnFailed:
		return true
	}
	return false
}

func uintField(name string, v *uint64) mpack.Field {
	return mpack.Field{Name: name, Read: func(r *mpack.Reader) (err error) { *v, err = r.Uint(); return err }}
}

// intField reads what an exit code or a signal can be on any system.
func intField(name string, v *int) mpack.Field {
	return mpack.Field{Name: name, Read: func(r *mpack.Reader) error {
		n, err := r.Int()
		if err == nil && (n < math.MinInt32 || n > math.MaxInt32) {
			err = r.Fail("found integer out of range, expected signed 32-bit integer")
		}
		*v = int(n)
		return err
	}}
}

func strField(name string, v *string) mpack.Field {
	return mpack.Field{Name: name, Read: func(r *mpack.Reader) (err error) { *v, err = r.Str(); return err }}
}

func strsField(name string, v *[]string) mpack.Field {
	return mpack.Field{Name: name, Read: func(r *mpack.Reader) (err error) { *v, err = r.Strs(); return err }}
}

func binField(name string, v *[]byte) mpack.Field {
	return mpack.Field{Name: name, Read: func(r *mpack.Reader) (err error) { *v, err = r.Bin(); return err }}
}

func boolField(name string, v *bool) mpack.Field {
	return mpack.Field{Name: name, Read: func(r *mpack.Reader) (err error) { *v, err = r.Bool(); return err }}
}

// mapField keeps an optional map's bytes for a decoder that knows its rules.
func mapField(name string, v *[]byte) mpack.Field {
	return mpack.Field{Name: name, Optional: true, Read: func(r *mpack.Reader) error {
		raw, err := r.RawMap()
		*v = clone(raw)
		return err
	}}
}

func hasNUL(s string) bool { return strings.IndexByte(s, 0) >= 0 }

func clone(b []byte) []byte { return append([]byte(nil), b...) }
