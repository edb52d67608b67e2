package cli

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"sandboxd/protocol"
)

func TestScreenBreaksLines(t *testing.T) {
	var b bytes.Buffer
	s := screen{w: &b, width: 40}
	s.field("decided by", "one two three four five six \x1b[31mseven")
	want := "  decided by    one two three four five\n                six ?[31mseven\n"
	if b.String() != want {
		t.Errorf("got %q, want %q", &b, want)
	}
	b.Reset()
	screen{w: &b}.text(4, "words that are long enough to be broken on a narrow terminal\n\n    copied  as it is\n")
	if got := b.String(); got != "    words that are long enough to be broken on a narrow terminal\n\n        copied  as it is\n" {
		t.Errorf("got %q", got)
	}
	for _, line := range strings.Split(strings.TrimSpace(b.String()), "\n") {
		if strings.HasSuffix(line, " ") {
			t.Errorf("%q ends in a blank", line)
		}
	}
}

func TestColour(t *testing.T) {
	if got := (screen{colour: true}).paint(bad, "no"); got != "\x1b[31mno\x1b[0m" {
		t.Errorf("got %q", got)
	}
	if got := (screen{}).paint(bad, "no"); got != "no" {
		t.Errorf("got %q", got)
	}
	if s := newScreen(System{Stdout: &bytes.Buffer{}, Environ: []string{"TERM=xterm"}}); s.colour || s.width != 0 {
		t.Errorf("what is no terminal: %+v", s)
	}
}

func TestSpeaksUTF8(t *testing.T) {
	for in, want := range map[string]bool{"LANG=C.UTF-8": true, "LC_ALL=C,LANG=de_DE.utf8": false, "LC_CTYPE=en_US.utf8": true, "": false, "LC_ALL=,LANG=x.UTF-8": true} {
		if got := speaksUTF8(strings.Split(in, ",")); got != want {
			t.Errorf("%s: %v", in, got)
		}
	}
}

func TestSizeWord(t *testing.T) {
	for n, want := range map[uint64]string{1 << 30: "1G", 512 << 20: "512M", 1023: "1023 bytes", 3 << 40: "3T", 1 << 10: "1K", 1<<20 + 1: "1048577 bytes"} {
		if got := sizeWord(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}

func TestQuoted(t *testing.T) {
	for in, want := range map[string]string{"/a/b.c": "/a/b.c", "a b": "'a b'", "it's": `'it'\''s'`, "": "''", "$x": "'$x'", "é": "'é'"} {
		if got := quoted(in); got != want {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
	}
}

func TestParseDistro(t *testing.T) {
	d := parseDistro("PRETTY_NAME=\"Rocky Linux 9.4 (Blue Onyx)\"\nID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\nX")
	if d.ID != "rocky" || len(d.Like) != 3 || d.Name != "Rocky Linux 9.4 (Blue Onyx)" {
		t.Errorf("got %+v", d)
	}
}

// Whatever the bytes and wherever they are cut, the events of a stream give them back,
// as text where that is possible.
func TestEventsLoseNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var chunks [][]byte
		if rapid.Bool().Draw(t, "text") {
			whole := []byte(rapid.String().Draw(t, "s"))
			for len(whole) > 0 {
				n := rapid.IntRange(1, len(whole)).Draw(t, "n")
				chunks, whole = append(chunks, whole[:n]), whole[n:]
			}
		} else {
			chunks = rapid.SliceOf(rapid.SliceOf(rapid.Byte())).Draw(t, "chunks")
		}
		var out bytes.Buffer
		e := newEvents(&out)
		for _, c := range chunks {
			if n, err := e.output(protocol.Stdout).Write(c); n != len(c) || err != nil {
				t.Fatal(n, err)
			}
		}
		e.end()
		want, got := bytes.Join(chunks, nil), []byte{}
		for line := range bytes.Lines(out.Bytes()) {
			var ev outputEvent
			if err := json.Unmarshal(line, &ev); err != nil {
				t.Fatal(err)
			}
			switch {
			case ev.Text != nil:
				got = append(got, *ev.Text...)
			case utf8.Valid(want):
				t.Fatalf("text came as base64: %s", line)
			default:
				b, err := base64.StdEncoding.DecodeString(*ev.Base64)
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, b...)
			}
		}
		if !bytes.Equal(got, want) {
			t.Fatalf("got %q, want %q", got, want)
		}
	})
}

// What the helper says before it has started waits: its last line may be the error.
func TestHelperLinesInEvents(t *testing.T) {
	var out bytes.Buffer
	e := newEvents(&out)
	e.helper().Write([]byte("sandboxd: first\nsandboxd: last\n"))
	if out.Len() > 0 {
		t.Errorf("said at once: %s", &out)
	}
	e.helperFailed(exitFailed, "sandboxd: first\nsandboxd: last\n")
	if got := out.String(); got != `{"event":"notice","message":"first"}`+"\n"+`{"event":"error","message":"last","exit":125}`+"\n" {
		t.Errorf("got %s", got)
	}
	out.Reset()
	e = newEvents(&out)
	e.helper().Write([]byte("sandboxd: early\nsandb"))
	e.start(task{}, nil)
	e.helper().Write([]byte("oxd: late\n"))
	if got := out.String(); !strings.HasPrefix(got, `{"event":"notice","message":"early"}`) || !strings.HasSuffix(got, `{"event":"notice","message":"late"}`+"\n") {
		t.Errorf("got %s", got)
	}
}
