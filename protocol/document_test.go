package protocol

import (
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"sandboxd/internal/mpack"
)

var update = flag.Bool("update", false, "write the generated parts of PROTOCOL.md anew")

const document = "PROTOCOL.md"

// The tables of PROTOCOL.md that stand elsewhere as data are made from that data.
func TestDocumentAgrees(t *testing.T) {
	Agrees(t, map[string]string{"tags": tagTable(), "required": requiredTable(), "example": example(t)})
}

// Agrees compares the named parts of the document with text, or writes them anew.
// It is exported for the tests that need packages which need this one.
func Agrees(t *testing.T, parts map[string]string) {
	t.Helper()
	b, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	got := string(b)
	want := got
	for name, text := range parts {
		want = replacePart(t, want, name, text)
	}
	if got == want {
		return
	}
	if !*update {
		t.Fatalf("%s is not what the data makes: go test ./protocol -update", document)
	}
	if err := os.WriteFile(document, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

func replacePart(t *testing.T, text, name, part string) string {
	begin, end := "<!-- "+name+":begin -->\n", "<!-- "+name+":end -->"
	before, rest, ok := strings.Cut(text, begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no part %q", document, name)
	}
	return before + begin + part + end + after
}

func tagTable() string {
	var b strings.Builder
	b.WriteString("| tag | where | platforms | meaning |\n|---|---|---|---|\n")
	for _, tag := range Tags() {
		where := ""
		for _, w := range []struct {
			set  bool
			name string
		}{{tag.Feature, "F"}, {tag.Applied, "A"}, {tag.Skip, "S"}} {
			if w.set {
				where += w.name
			}
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", tag.ID, where, strings.Join(tag.Platforms, ", "), tag.Meaning)
	}
	return b.String()
}

func requiredTable() string {
	var b strings.Builder
	b.WriteString("| platform | tag | demanded |\n|---|---|---|\n")
	for _, d := range demands {
		when := "always"
		if d.when != "" {
			when = "where " + d.when
		}
		fmt.Fprintf(&b, "| %s | `%s` | %s |\n", d.platform, d.tag, when)
	}
	return b.String()
}

// example shows golden frames in hex, the strings among the bytes beside it.
func example(t *testing.T) string {
	var b strings.Builder
	b.WriteString("```\n")
	for _, name := range []string{"hello-helper", "hello-broker", "exec-start-plain", "exec-out-plain", "cancel"} {
		raw, err := os.ReadFile("fixtures/frame/" + name + ".bin")
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s (%d bytes)\n", name, len(raw))
		for line := range slices.Chunk(raw, 16) {
			fmt.Fprintf(&b, "  %-48s|%s|\n", spaced(line), printable(line))
		}
	}
	b.WriteString("```\n")
	return b.String()
}

func spaced(b []byte) string {
	var s strings.Builder
	for _, c := range b {
		s.WriteString(hex.EncodeToString([]byte{c}) + " ")
	}
	return s.String()
}

func printable(b []byte) string {
	out := slices.Clone(b)
	for i, c := range out {
		if c < 0x20 || c > 0x7e {
			out[i] = '.'
		}
	}
	return string(out)
}

// The tables of kinds and codes are written by hand; nothing may be left out.
func TestDocumentNamesEverything(t *testing.T) {
	b, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	_, kinds, _ := strings.Cut(text, "## 4. Kinds")
	kinds, _, _ = strings.Cut(kinds, "## 5.")
	for _, body := range bodies() {
		_, section, ok := strings.Cut(kinds, "`"+string(body.Kind())+"` (")
		if !ok {
			t.Errorf("%s has no heading", body.Kind())
			continue
		}
		section, _, _ = strings.Cut(section, "\n###")
		if got, want := tableKeys(section), bodyKeys(t, body); !slices.Equal(got, want) {
			t.Errorf("%s: the document has %v, the encoding %v", body.Kind(), got, want)
		}
	}
	for _, code := range []Code{
		CodeMalformedFrame, CodeProtoMismatch, CodeUnknownKind, CodeBusy, CodeNoExec, CodeBadPolicy, CodeRefused, CodeSpawnFailed,
	} {
		if !strings.Contains(text, "\n| `"+string(code)+"` |") || !code.Known() {
			t.Errorf("%s has no row, or is not known", code)
		}
	}
	if strings.Contains(text, "`no_such_code` |") {
		t.Error("the search finds what is not there")
	}
}

// tableKeys gives the first column of a table.
func tableKeys(section string) (keys []string) {
	for line := range strings.Lines(section) {
		if rest, ok := strings.CutPrefix(line, "| `"); ok {
			key, _, _ := strings.Cut(rest, "`")
			keys = append(keys, key)
		}
	}
	return keys
}

// bodyKeys gives the keys of an encoded body in their order.
func bodyKeys(t *testing.T, body Body) (keys []string) {
	t.Helper()
	r := mpack.NewReader(body.Append(nil))
	n, err := r.Map()
	for range n {
		key, _ := r.Str()
		keys = append(keys, key)
		_, err = r.Raw()
	}
	if err != nil {
		t.Fatal(err)
	}
	return keys
}
