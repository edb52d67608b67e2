package protocol

import (
	"bytes"
	"errors"
	"io"
	"math"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"

	"sandboxd/internal/mpack"
)

// bodies holds one of each kind, with nothing left at its zero value.
func bodies() []Body {
	return []Body{
		Hello{Proto: ExecVersion, Peer: "broker", Features: []string{"bwrap", "of-tomorrow"}},
		ExecStart{
			Argv: []string{"sh", "-c", "echo ü"}, Env: map[string]string{"B": "2", "A": "1"}, Cwd: "/srv",
			Token: []byte{0, 1}, Policy: []byte{0x81, 0xa1, 'v', 2}, Limits: []byte{0x80},
		},
		ExecStdin{Data: []byte("in"), EOF: true},
		ExecOut{Stream: Stderr, Data: []byte("out"), Bytes: math.MaxUint64, Truncated: true},
		ExecExit{
			Code: 137, Signal: 9, StdoutBytes: 1, StderrBytes: 2, StdoutTruncated: true, StderrTruncated: true,
			Enforcement: []string{"bwrap"}, Degraded: true, WallMS: 3, TimedOut: true, Cancelled: true,
		},
		Cancel{}, Shutdown{}, Heartbeat{},
		ErrorBody{Code: CodeBusy, Msg: "an execution is running"},
	}
}

func TestFrameRoundTrip(t *testing.T) {
	for _, body := range bodies() {
		b, err := AppendFrame(nil, math.MaxUint64, body)
		if err != nil {
			t.Fatal(err)
		}
		f, err := NewReader(iotest.OneByteReader(bytes.NewReader(b))).Next()
		if err != nil {
			t.Fatalf("%s: %v", body.Kind(), err)
		}
		if want := (Frame{ID: math.MaxUint64, Kind: body.Kind(), Body: body}); !reflect.DeepEqual(f, want) {
			t.Errorf("got %+v, want %+v", f, want)
		}
	}
}

// envelope builds a frame's map from raw parts, so that each can be wrong.
func envelope(v, id uint64, kind string, body []byte) []byte {
	b := mpack.AppendMap(nil, 4)
	b = mpack.AppendUint(mpack.AppendStr(b, "v"), v)
	b = mpack.AppendUint(mpack.AppendStr(b, "id"), id)
	b = mpack.AppendStr(mpack.AppendStr(b, "kind"), kind)
	return append(mpack.AppendStr(b, "body"), body...)
}

func TestDecodeFrameSortsItsErrors(t *testing.T) {
	empty := []byte{0x80}
	for name, tc := range map[string]struct {
		in    []byte
		fatal bool
		want  string
	}{
		"nothing":         {nil, true, "cannot decode frame: found end of input, expected map"},
		"version":         {envelope(2, 1, "cancel", empty), true, "cannot decode frame: v: found envelope version 2, expected 1"},
		"id 0":            {envelope(1, 0, "cancel", empty), true, "cannot decode frame: id: found 0, which only an error may have"},
		"id 0, unknown":   {envelope(1, 0, "cap_call", empty), true, "cannot decode frame: id: found 0, which only an error may have"},
		"body no map":     {envelope(1, 1, "cancel", []byte{0x90}), true, "cannot decode frame: body: found array, expected map"},
		"trailing":        {append(envelope(1, 1, "cancel", empty), 0), true, "cannot decode frame: found bytes behind it (1), expected the end"},
		"utf8 deep":       {envelope(1, 1, "cancel", []byte("\x81\xa1\xff\x00")), true, "cannot decode frame: body: found invalid UTF-8, expected UTF-8 string"},
		"unknown key":     {envelope(1, 1, "cancel", []byte("\x81\xa1x\x00")), false, "cannot decode cancel: x: unknown key"},
		"missing key":     {envelope(1, 1, "error", []byte("\x81\xa3msg\xa0")), false, "cannot decode error: code: missing key"},
		"nil list":        {envelope(1, 1, "hello", []byte("\x83\xa5proto\x03\xa4peer\xa0\xa8features\xc0")), false, "cannot decode hello: features: found nil, expected array"},
		"code of no kind": {envelope(1, 1, "error", []byte("\x82\xa4code\xa1x\xa3msg\xa0")), false, "cannot decode error: code: found an unknown code, expected one of protocol version 3"},
	} {
		_, err := DecodeFrame(tc.in)
		var bad *DecodeError
		if !errors.As(err, &bad) || bad.Fatal != tc.fatal || err.Error() != tc.want {
			t.Errorf("%s: got %v, want %s (fatal %t)", name, err, tc.want, tc.fatal)
			continue
		}
		if !bad.Fatal && (bad.ID != 1 || bad.Kind == "") {
			t.Errorf("%s: id %d kind %q", name, bad.ID, bad.Kind)
		}
	}
}

// A hello of another version has other keys. What it says is its version.
func TestHelloVersionComesFirst(t *testing.T) {
	body := func(pairs ...[]byte) []byte {
		b := mpack.AppendMap(nil, len(pairs)/2)
		for _, p := range pairs {
			b = append(b, p...)
		}
		return b
	}
	str := func(s string) []byte { return mpack.AppendStr(nil, s) }
	num := func(n uint64) []byte { return mpack.AppendUint(nil, n) }
	none, list := []byte{0xc0}, []byte{0x90}
	for name, tt := range map[string]struct {
		body  []byte
		proto uint64 // 0: the body is malformed
	}{
		"another, with these keys":       {body(str("proto"), num(4), str("peer"), str("x"), str("features"), list), 4},
		"another, with other keys":       {body(str("name"), none, num(1), none, str("proto"), num(2)), 2},
		"another, alone":                 {body(str("proto"), num(math.MaxUint64)), math.MaxUint64},
		"another, and then this":         {body(str("proto"), num(4), str("proto"), num(3)), 4},
		"this, with these keys":          {body(str("proto"), num(3), str("peer"), str("x"), str("features"), list), 3},
		"this, with another key":         {body(str("proto"), num(3), str("peer"), str("x"), str("features"), list, str("more"), none), 0},
		"this, and then another":         {body(str("proto"), num(3), str("proto"), num(4), str("peer"), str("x"), str("features"), list), 0},
		"no integer":                     {body(str("proto"), str("4"), str("peer"), str("x"), str("features"), list), 0},
		"negative":                       {body(str("proto"), []byte{0xff}, str("peer"), str("x"), str("features"), list), 0},
		"none":                           {body(str("peer"), str("x"), str("features"), list), 0},
		"one that is a value, not a key": {body(str("peer"), str("proto"), str("more"), num(4)), 0},
	} {
		f, err := DecodeFrame(envelope(1, 7, "hello", tt.body))
		var bad *DecodeError
		switch {
		case tt.proto == 0:
			if !errors.As(err, &bad) || bad.Fatal || bad.ID != 7 || bad.Kind != KindHello {
				t.Errorf("%s: got %+v, %v", name, f, err)
			}
		case err != nil || f.ID != 7 || f.Body.(Hello).Proto != tt.proto:
			t.Errorf("%s: got %+v, %v", name, f, err)
		case tt.proto != ExecVersion && !reflect.DeepEqual(f.Body, Hello{Proto: tt.proto}):
			t.Errorf("%s: more was taken from it than its version: %+v", name, f.Body)
		}
	}
}

func TestExecStartRules(t *testing.T) {
	good := func() ExecStart {
		return ExecStart{Argv: []string{"x"}, Env: map[string]string{}, Cwd: "/", Token: []byte("t")}
	}
	for _, tc := range []struct {
		change func(*ExecStart)
		want   string
	}{
		{func(*ExecStart) {}, ""},
		{func(s *ExecStart) { s.Cwd = "/" + strings.Repeat("x", 4094) }, ""},
		{func(s *ExecStart) { s.Argv = nil }, "argv"},
		{func(s *ExecStart) { s.Argv = []string{"x", "a\x00b"} }, "argv[1]"},
		{func(s *ExecStart) { s.Env[""] = "1" }, `env.""`},
		{func(s *ExecStart) { s.Env["A=B"] = "1" }, `env."A=B"`},
		{func(s *ExecStart) { s.Env["A\x00"] = "1" }, `env."A\x00"`},
		{func(s *ExecStart) { s.Env["A"] = "secret\x00" }, "env.A"},
		{func(s *ExecStart) { s.Cwd = "" }, "cwd"},
		{func(s *ExecStart) { s.Cwd = "srv" }, "cwd"},
		{func(s *ExecStart) { s.Cwd = "/a\x00b" }, "cwd"},
		{func(s *ExecStart) { s.Cwd = "/" + strings.Repeat("x", 4095) }, "cwd"},
		{func(s *ExecStart) { s.Token = nil }, "token"},
		{func(s *ExecStart) { s.Policy = []byte{0xc0} }, "policy"},
		{func(s *ExecStart) { s.Limits = []byte{0x90} }, "limits"},
	} {
		s := good()
		tc.change(&s)
		_, err := DecodeFrame(envelope(1, 7, "exec_start", s.Append(nil)))
		if tc.want == "" {
			if err != nil {
				t.Errorf("good one: %v", err)
			}
			continue
		}
		var bad *DecodeError
		if !errors.As(err, &bad) || bad.Fatal || bad.ID != 7 || bad.Path != tc.want {
			t.Errorf("want a bad body at %s, got %v", tc.want, err)
			continue
		}
		if strings.Contains(err.Error(), "secret") {
			t.Errorf("a value in the message: %v", err)
		}
	}
}

// A duplicate key inside the policy is the policy decoder's to refuse, as
// bad_policy: the frame around it is in order.
func TestPolicyIsKeptRaw(t *testing.T) {
	raw := []byte("\x82\xa1v\x02\xa1v\x02")
	s := ExecStart{Argv: []string{"x"}, Cwd: "/", Token: []byte("t"), Policy: raw}
	in := envelope(1, 7, "exec_start", s.Append(nil))
	f, err := DecodeFrame(in)
	if err != nil {
		t.Fatal(err)
	}
	got := f.Body.(ExecStart)
	clear(in)
	if !bytes.Equal(got.Policy, raw) || string(got.Token) != "t" {
		t.Fatalf("got %x, %q: the body must not alias the input", got.Policy, got.Token)
	}
}

func TestUnknownKindIsAFrame(t *testing.T) {
	f, err := DecodeFrame(envelope(1, 9, "cap_call", []byte("\x81\xc0\xd4\x01\x02")))
	if err != nil || f.ID != 9 || f.Kind != "cap_call" || f.Body != nil {
		t.Fatalf("got %+v, %v", f, err)
	}
}

func TestKeyOrderIsFree(t *testing.T) {
	b := mpack.AppendMap(nil, 4)
	b = mpack.AppendMap(mpack.AppendStr(b, "body"), 0)
	b = mpack.AppendStr(mpack.AppendStr(b, "kind"), "cancel")
	b = append(mpack.AppendStr(b, "id"), 0xd1, 0, 5)
	b = append(mpack.AppendStr(b, "v"), 0xcf, 0, 0, 0, 0, 0, 0, 0, 1)
	f, err := DecodeFrame(b)
	if err != nil || f.ID != 5 || f.Body != (Cancel{}) {
		t.Fatalf("got %+v, %v", f, err)
	}
}

func TestAppendFrameRefuses(t *testing.T) {
	dst := []byte("before")
	if b, err := AppendFrame(dst, 0, Cancel{}); err == nil || string(b) != "before" {
		t.Errorf("id 0: got %q, %v", b, err)
	}
	if _, err := AppendFrame(nil, 0, ErrorBody{Code: CodeMalformedFrame}); err != nil {
		t.Errorf("id 0 in an error: %v", err)
	}
	// 39 bytes are spent around the data: see the fixture of the largest frame.
	big := ExecStdin{Data: make([]byte, MaxFrame)}
	if b, err := AppendFrame(dst, 1, big); err == nil || string(b) != "before" {
		t.Errorf("too large: got %d bytes, %v", len(b), err)
	}
}

func TestReaderEnds(t *testing.T) {
	whole, _ := AppendFrame(nil, 1, Cancel{})
	r := NewReader(bytes.NewReader(whole))
	if _, err := r.Next(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := r.Next(); err != io.EOF {
			t.Fatalf("at the boundary: got %v, want io.EOF", err)
		}
	}
	for n := 1; n < len(whole); n++ {
		r := NewReader(bytes.NewReader(whole[:n]))
		_, err := r.Next()
		var bad *DecodeError
		if !errors.As(err, &bad) || !bad.Fatal || !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatalf("cut at %d: got %v", n, err)
		}
		if _, again := r.Next(); again != err {
			t.Fatalf("cut at %d: the error must be sticky, got %v", n, again)
		}
	}
	broken := errors.New("broken")
	r = NewReader(iotest.ErrReader(broken))
	if _, err := r.Next(); !errors.Is(err, broken) {
		t.Fatalf("got %v", err)
	}
}

func TestBadBodyIsNotSticky(t *testing.T) {
	bad := envelope(1, 3, "cancel", []byte("\x81\xa1x\x00"))
	stream := append([]byte{0, 0, 0, byte(len(bad))}, bad...)
	stream, _ = AppendFrame(stream, 4, Cancel{})
	r := NewReader(bytes.NewReader(stream))
	f, err := r.Next()
	if err == nil || f.ID != 3 || f.Kind != KindCancel {
		t.Fatalf("got %+v, %v", f, err)
	}
	if f, err = r.Next(); err != nil || f.ID != 4 {
		t.Fatalf("the next frame: got %+v, %v", f, err)
	}
}

// hungry gives what it has and then an error, and remembers the largest buffer
// that it was offered.
type hungry struct {
	data  []byte
	asked int
}

func (h *hungry) Read(p []byte) (int, error) {
	h.asked = max(h.asked, len(p))
	if len(h.data) == 0 {
		return 0, io.EOF
	}
	n := copy(p, h.data)
	h.data = h.data[n:]
	return n, nil
}

func TestPrefixBuysNoMemory(t *testing.T) {
	src := &hungry{data: append([]byte{1, 0, 0, 0}, make([]byte, 10)...)} // exactly 16 MiB
	r := NewReader(src)
	if _, err := r.Next(); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Fatalf("got %v", err)
	}
	if cap(r.buf) > firstRead || src.asked > firstRead {
		t.Errorf("10 bytes made a buffer of %d", cap(r.buf))
	}
	// Twice what came is the most that it may take.
	const came = 3 * firstRead
	r = NewReader(bytes.NewReader(append([]byte{1, 0, 0, 0}, make([]byte, came)...)))
	if _, err := r.Next(); !errors.Is(err, io.ErrUnexpectedEOF) || cap(r.buf) > 2*came || cap(r.buf) < came {
		t.Errorf("%d bytes made a buffer of %d, %v", came, cap(r.buf), err)
	}
	r = NewReader(bytes.NewReader([]byte{1, 0, 0, 1}))
	if _, err := r.Next(); err == nil || err.Error() != "cannot decode frame: found a length of 16777217 bytes, expected at most 16777216" || r.buf != nil {
		t.Errorf("too long a prefix: got %v, buffer of %d", err, cap(r.buf))
	}
}

func TestLargeFrameAndBack(t *testing.T) {
	var stream bytes.Buffer
	w := NewWriter(&stream)
	data := bytes.Repeat([]byte("0123456789abcdef"), 1<<20-4)
	if err := w.Write(1, ExecStdin{Data: data}); err != nil {
		t.Fatal(err)
	}
	if err := w.Write(2, Cancel{}); err != nil {
		t.Fatal(err)
	}
	r := NewReader(&stream)
	f, err := r.Next()
	if err != nil || !bytes.Equal(f.Body.(ExecStdin).Data, data) {
		t.Fatalf("large frame: %v", err)
	}
	if f, err := r.Next(); err != nil || f.ID != 2 {
		t.Fatalf("small frame after it: %+v, %v", f, err)
	}
	if cap(r.buf) > firstRead || cap(w.buf) > keepSize {
		t.Errorf("buffers stay large: reader %d, writer %d", cap(r.buf), cap(w.buf))
	}
}
