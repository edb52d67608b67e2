package jsonfile

import (
	"errors"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"sandboxd/internal/policy"
	"sandboxd/protocol"
)

const sample = `// what the build may touch
{
  "v": 2,
  "writable_roots": ["/w/", "/m\u00fcll"], /* the slash goes */
  "readable_roots": [
    "/r", // trailing commas are fine
  ],
  "protected": ["/w/.git"],
  "mounts": [{"path": "/run/s", "access": "ro", "required": false}],
  "network": {"mode": "proxy", "allow": ["*.example.org:443"], "proxy": "[::1]:3128"},
  "limits": {
    "cpu_s": 0, "wall_s": 9223372036854775807, "mem_bytes": 3,
    "pids": 4, "fsize_bytes": 5, "output_bytes": 6
  },
  "env_allow": ["PATH"],
  "scratch": "tmpfs"
} // the end`

func TestDecode(t *testing.T) {
	want := protocol.Policy{
		WritableRoots: []string{"/w", "/müll"}, ReadableRoots: []string{"/r"}, Protected: []string{"/w/.git"},
		Mounts:   []protocol.Mount{{Path: "/run/s", Access: protocol.ReadOnly}},
		Network:  protocol.Network{Mode: protocol.NetProxy, Allow: []string{"*.example.org:443"}, Proxy: "[::1]:3128"},
		Limits:   protocol.Limits{WallSeconds: 1<<63 - 1, MemBytes: 3, Pids: 4, FsizeBytes: 5, OutputBytes: 6},
		EnvAllow: []string{"PATH"}, Scratch: protocol.ScratchTmpfs,
	}
	for name, text := range map[string]string{
		"as it is": sample, "byte order mark": "\ufeff" + sample, "carriage returns": strings.ReplaceAll(sample, "\n", "\r\n"),
	} {
		p, err := Decode([]byte(text))
		if err != nil || !reflect.DeepEqual(p, want) {
			t.Errorf("%s: got %+v, %v", name, p, err)
		}
	}
}

func TestDecodeSaysWhere(t *testing.T) {
	tests := []struct {
		name, old, new string // of the sample
		line, column   int
		path, msg      string
	}{
		{"another version", `"v": 2`, `"v": 1`, 3, 8, "v", "version 1, expected 2"},
		{"a relative path", `"/r", //`, `"r", //`, 6, 5, "readable_roots[0]", "begin it with /"},
		{"columns count characters", `"/m\u00fcll"`, `"/müü", "x"`, 4, 37, "writable_roots[2]", "begin it with /"},
		{"a wrong type", `"tmpfs"`, `7`, 16, 14, "scratch", "found integer"},
		{"null", `["PATH"]`, `null`, 15, 16, "env_allow", "found null, expected array"},
		{"an object", `["PATH"]`, `{}`, 15, 16, "env_allow", "found object, expected array"},
		{"a boolean", `"PATH"`, `true`, 15, 17, "env_allow[0]", "found boolean"},
		{"an unknown key", `"env_allow"`, `"env_alow"`, 15, 3, "env_alow", "unknown key; expected exactly v, writable_roots"},
		{"an odd unknown key", `"env_allow"`, `"env allow.x"`, 15, 3, `"env allow.x"`, "unknown key"},
		{"an unknown key inside", `"access"`, `"acces"`, 9, 33, "mounts[0].acces", "unknown key; expected exactly path, access, required"},
		{"a missing key", `"cpu_s": 0, `, ``, 11, 13, "limits.cpu_s", "missing key; expected exactly cpu_s, wall_s"},
		{"a missing list", `"env_allow": ["PATH"],`, ``, 2, 1, "env_allow", "missing key"},
		{"a repeated key", `"scratch": "tmpfs"`, `"scratch": "tmpfs", "scratch": "/s"`, 16, 23, "scratch", "duplicate key"},
		{"a rule between lists", `"/run/s"`, `"/w/.git/x"`, 9, 23, "mounts[0].path", "protected[0]"},
		{"a bad host", `"*.example.org:443"`, `"*"`, 10, 42, "network.allow[0]", "every host"},
		{"a fraction", `"pids": 4`, `"pids": 4.0`, 13, 13, "limits.pids", "found number with a fraction or an exponent, expected"},
		{"an exponent", `"pids": 4`, `"pids": 1e999`, 13, 13, "limits.pids", "found number with a fraction or an exponent, expected"},
		{"a negative number", `"pids": 4`, `"pids": -4`, 13, 13, "limits.pids", "negative"},
		{"beyond the signed range", `9223372036854775807`, `9223372036854775808`, 12, 27, "limits.wall_s", "9223372036854775807"},
		{"beyond 64 bits", `9223372036854775807`, `99223372036854775807`, 12, 27, "limits.wall_s", "beyond 64 bits"},
		{"half a surrogate pair", `\u00fc`, `\ud800`, 4, 29, "writable_roots[1]", "surrogate"},
		{"the other half", `\u00fc`, `\udc00\ud800`, 4, 29, "writable_roots[1]", "surrogate"},
		{"invalid UTF-8", `\u00fc`, "\xff", 4, 29, "writable_roots[1]", "UTF-8"},
		{"a syntax error", `"v": 2,`, `"v": 2`, 4, 3, "", "after object value"},
		{"a syntax error behind umlauts", `/* the slash goes */`, `/* ü */ !`, 4, 52, "", "invalid character"},
		{"no closing brace", "} // the end", "", 17, 1, "", "unexpected EOF"},
		{"an open comment", "} // the end", "} /* the end", 17, 3, "", "comment"},
		{"something behind", "} // the end", "} {", 17, 3, "", "top-level"},
		{"a literal that is none", `["PATH"]`, "[\x01PATH]", 15, 17, "", "start of value"},
		{"too deep", `["PATH"]`, "[\"[\", /* [ */ " + strings.Repeat("[", 20), 15, 30 + maxDepth - 2, "", "deeper than 16"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if strings.Count(sample, tt.old) != 1 {
				t.Fatalf("%q stands %d times in the sample", tt.old, strings.Count(sample, tt.old))
			}
			p, err := Decode([]byte(strings.Replace(sample, tt.old, tt.new, 1)))
			var e *Error
			if !errors.As(err, &e) {
				t.Fatalf("got %v, want an *Error", err)
			}
			if e.Line != tt.line || e.Column != tt.column || e.Path != tt.path || !strings.Contains(e.Msg, tt.msg) {
				t.Errorf("got %v\nwant %d:%d: %s: ...%s...", err, tt.line, tt.column, tt.path, tt.msg)
			}
			if !reflect.DeepEqual(p, protocol.Policy{}) {
				t.Errorf("the policy beside the error is not zero: %+v", p)
			}
		})
	}
}

func TestPlaces(t *testing.T) {
	_, at, err := DecodePlaces([]byte("\ufeff" + sample))
	if err != nil {
		t.Fatal(err)
	}
	for path, line := range map[string]int{"": 2, "v": 3, "writable_roots[1]": 4, "readable_roots[0]": 6, "mounts[0].path": 9, "limits.pids": 13, "scratch": 16} {
		if at[path] != line {
			t.Errorf("%q: line %d, want %d", path, at[path], line)
		}
	}
	if _, at, err := DecodePlaces([]byte("{")); err == nil || at != nil {
		t.Errorf("%v beside %v", at, err)
	}
}

// A long key above many values costs no more than it is.
func TestPlacesBuyNoMemory(t *testing.T) {
	long := strings.Repeat("k", MaxSize/2)
	text := `{"` + long + `": [` + strings.Repeat("0,", MaxSize/5) + `]}`
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := Decode([]byte(text))
	runtime.ReadMemStats(&after)
	var e *Error
	if !errors.As(err, &e) || e.Line != 1 || e.Column != 2 || !strings.Contains(e.Msg, "unknown key") || len(e.Path) > 100 {
		t.Errorf("got %.300v", err)
	}
	if n := after.TotalAlloc - before.TotalAlloc; n > 1<<30 {
		t.Errorf("%d bytes allocated for a text of %d", n, len(text))
	}
}

func TestSurrogatePairsAreDecoded(t *testing.T) {
	p, err := Decode([]byte(strings.Replace(sample, `\u00fc`, `\ud83d\ude00\\ud800\ufffd`, 1)))
	if err != nil || p.WritableRoots[1] != `/m😀\ud800`+"\ufffd"+`ll` {
		t.Errorf("got %q, %v", p.WritableRoots, err)
	}
}

func TestSizeIsBounded(t *testing.T) {
	fits := sample + "\n" + strings.Repeat(" ", MaxSize-len(sample)-1)
	if _, err := Decode([]byte(fits)); err != nil {
		t.Errorf("%d bytes: %v", len(fits), err)
	}
	if _, err := Decode([]byte(fits + " ")); err == nil || !strings.Contains(err.Error(), "1048577 bytes") {
		t.Errorf("one byte more: %v", err)
	}
	if _, err := Decode(nil); err == nil || !strings.HasPrefix(err.Error(), "1:1: ") {
		t.Errorf("nothing: %v", err)
	}
}

// Any text gives a valid policy that its own encoding gives too, or an *Error on
// one line that points into the text, with the zero value.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(sample))
	f.Add([]byte(strings.Replace(sample, `"v": 2`, `"v": 3`, 1)))
	f.Add([]byte(`{"a": [1, -2, 3.5, null, true, "\ud800"], // x`))
	f.Add([]byte("\ufeff{\"\\u0000\": {\"v\": 2, \"v\": 2}}"))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := Decode(b)
		if err == nil {
			q, err := policy.Decode(p.Append(nil))
			if err != nil || !reflect.DeepEqual(p, q) {
				t.Fatalf("no round trip: %v", err)
			}
			return
		}
		var e *Error
		if !errors.As(err, &e) || !reflect.DeepEqual(p, protocol.Policy{}) {
			t.Fatalf("error %#v beside %+v", err, p)
		}
		lines := slices.Collect(strings.SplitSeq(string(b), "\n"))
		if e.Line < 1 || e.Line > len(lines) || e.Column < 1 || e.Column > len(lines[e.Line-1])+1 || strings.ContainsAny(e.Error(), "\n\x1b") {
			t.Fatalf("%q does not point into the text of %d lines", err, len(lines))
		}
	})
}
