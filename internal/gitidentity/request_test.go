package gitidentity

import (
	"bytes"
	"encoding/base64"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sandboxd/internal/testenv"
	"sandboxd/protocol"
)

func encoded(change ...func(*protocol.Policy)) string {
	p := protocol.Policy{WritableRoots: []string{"/w"}, Network: protocol.Network{Mode: protocol.NetOff}, Scratch: protocol.ScratchTmpfs}
	for _, f := range change {
		f(&p)
	}
	return base64.StdEncoding.EncodeToString(p.Append(nil))
}

// many makes the policy at least so many bytes.
func many(bytes int) func(*protocol.Policy) {
	return func(p *protocol.Policy) {
		for size := 0; size < bytes; size += 400 {
			p.ReadableRoots = append(p.ReadableRoots, "/r/"+strings.Repeat("x", 390)+string(rune('a'+size/400%26)))
		}
	}
}

func TestParse(t *testing.T) {
	r, err := Parse([]string{encoded(), "/w", `[["user.name","Old"],["user.email","a@example.org"],["user.name","Ann"]]`}, nil)
	if err != nil || *r.Name != "Ann" || *r.Email != "a@example.org" || r.Policy.WritableRoots[0] != "/w" {
		t.Errorf("got %+v, %v", r, err)
	}
	for _, end := range []string{"", "\n"} {
		if r, err = Parse([]string{"-", "/w", "[]"}, strings.NewReader(encoded(many(300<<10))+end)); err != nil || r.Name != nil || len(r.Policy.ReadableRoots) == 0 {
			t.Errorf("from standard input: %v", err)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	good, empty := encoded(), "[]"
	unpadded, name := "", "A"
	for len(unpadded)%4 == 0 { // until one needs padding
		unpadded = strings.TrimRight(encoded(func(p *protocol.Policy) { p.EnvAllow = []string{name} }), "=")
		name += "A"
	}
	cases := []struct {
		name     string
		operands []string
		stdin    string
		want     string
	}{
		{"no operand", nil, "", "three operands"},
		{"two", []string{good, "/w"}, "", "three operands"},
		{"four", []string{good, "/w", empty, "x"}, "", "three operands"},
		{"no base64", []string{"?", "/w", empty}, "", "base64"},
		{"url base64", []string{"_w==", "/w", empty}, "", "base64"},
		{"unpadded", []string{unpadded, "/w", empty}, "", "base64"},
		{"line break", []string{good[:8] + "\n" + good[8:], "/w", empty}, "", "base64"},
		{"trailing bits", []string{"/x==", "/w", empty}, "", "base64"},
		{"two final line breaks", []string{"-", "/w", empty}, good + "\n\n", "base64"},
		{"empty", []string{"", "/w", empty}, "", "cannot read the policy"},
		{"no policy", []string{"gA==", "/w", empty}, "", "cannot read the policy"},
		{"trailing bytes", []string{base64.StdEncoding.EncodeToString(append(protocol.Policy{WritableRoots: []string{"/w"}, Network: protocol.Network{Mode: "off"}, Scratch: "tmpfs"}.Append(nil), 0)), "/w", empty}, "", "cannot read the policy"},
		{"large argument", []string{encoded(many(100 << 10)), "/w", empty}, "", "larger than 98304"},
		{"large input", []string{"-", "/w", empty}, strings.Repeat("A", 2<<20), "larger than 1048576"},
		{"relative workspace", []string{good, "w", empty}, "", "cannot use the workspace"},
		{"dots", []string{good, "/w/../x", empty}, "", "cannot use the workspace"},
		{"no JSON", []string{good, "/w", "{}"}, "", "JSON array"},
		{"null", []string{good, "/w", "null"}, "", "JSON array"},
		{"null value", []string{good, "/w", `[["user.name",null]]`}, "", "JSON array"},
		{"three strings", []string{good, "/w", `[["user.name","a","b"]]`}, "", "JSON array"},
		{"number", []string{good, "/w", `[["user.name",1]]`}, "", "JSON array"},
		{"behind it", []string{good, "/w", `[] []`}, "", "JSON array"},
		{"no UTF-8", []string{good, "/w", "[[\"user.name\",\"\xff\"]]"}, "", "JSON array"},
		{"other key", []string{good, "/w", `[["core.fsmonitor","sesame"]]`}, "", "only user.name"},
		{"NUL", []string{good, "/w", `[["user.name","sesame\u0000"]]`}, "", "NUL"},
		{"large entries", []string{good, "/w", `[["user.name","` + strings.Repeat("x", 65<<10) + `"]]`}, "", "larger than 65536"},
	}
	for _, c := range cases {
		_, err := Parse(c.operands, strings.NewReader(c.stdin))
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "sesame") {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
	}
	if _, err := Parse([]string{"-", "/w", "[]"}, broken{}); !errors.Is(err, os.ErrClosed) {
		t.Errorf("input that fails: %v", err)
	}
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, os.ErrClosed }

var _ io.Reader = broken{}

func TestRenderBounds(t *testing.T) {
	long := strings.Repeat(`"`, 40<<10) // twice as long when it is escaped
	if _, err := (Request{Name: &long}).Render(); err == nil || !strings.Contains(err.Error(), "larger than 65536") || strings.Contains(err.Error(), `"""`) {
		t.Errorf("got %v", err)
	}
	name := "Ann"
	r := Request{Name: &name}
	text, err := r.Render()
	if err != nil || !bytes.Contains(text, []byte("useConfigOnly = true")) {
		t.Fatalf("%q, %v", text, err)
	}
	r.Policy.Limits.FsizeBytes = uint64(len(text))
	if _, err := r.Render(); err != nil {
		t.Errorf("at the ceiling: %v", err)
	}
	r.Policy.Limits.FsizeBytes--
	if _, err := r.Render(); err == nil || !strings.Contains(err.Error(), "fsize_bytes") {
		t.Errorf("over the ceiling: %v", err)
	}
}

// git reads back what was given, and writes the same bytes where it quotes alike.
func TestQuotingAgainstGit(t *testing.T) {
	testenv.Tool(t, "git")
	for _, value := range []string{
		"Ann Other", "", " lead", "trail ", "two  blanks", "tab\tin", "\ttab first", "line\nbreak", `back\slash`, `"quoted"`,
		"semi;colon", "ha#sh", "é ü 漢", "a\rb", "end\r", "\rfirst", "\x01\x1b[31m\x7f", "[user]", "= x", `trailing \`, "x\x08y", "\v", "'single'",
	} {
		dir := t.TempDir()
		text, err := Request{Name: &value, Email: &value}.Render()
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(dir, "ours")
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, key := range []string{"user.name", "user.email"} {
			if got := git(t, dir, "config", "--file", file, "-z", "--get", key); got != value+"\x00" {
				t.Errorf("%q: git reads %q", value, got)
			}
		}
		if got := git(t, dir, "config", "--file", file, "--type=bool", "--get", "user.useConfigOnly"); got != "true\n" {
			t.Errorf("useConfigOnly: %q", got)
		}
		if strings.Contains(value, "\r") {
			continue // git before 2.46 does not quote it, and reads something else back
		}
		theirs := filepath.Join(dir, "theirs")
		for _, kv := range [][2]string{{"user.useConfigOnly", "true"}, {"user.name", value}, {"user.email", value}} {
			git(t, dir, "config", "--file", theirs, kv[0], kv[1])
		}
		if b, err := os.ReadFile(theirs); err != nil || !bytes.Equal(b, text) {
			t.Errorf("%q: git writes %q, we %q (%v)", value, b, text, err)
		}
	}
}

// Values of every kind, thousands in one file, are read back by git as they were.
func TestQuotingOfAnyValue(t *testing.T) {
	testenv.Tool(t, "git")
	const of = "ab \t\n\r\\\"'#;=[]$`%\x01\x08\x7fé\u2028\ufeff"
	alphabet := []rune(of)
	var file, want strings.Builder
	random := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		value := make([]rune, random.IntN(12))
		for i := range value {
			value[i] = alphabet[random.IntN(len(alphabet))]
		}
		v := string(value)
		text, err := Request{Name: &v}.Render()
		if err != nil {
			t.Fatal(err)
		}
		file.Write(text)
		want.WriteString(v + "\x00")
	}
	at := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(at, []byte(file.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	got := strings.Split(git(t, filepath.Dir(at), "config", "--file", at, "-z", "--get-all", "user.name"), "\x00")
	values := strings.Split(want.String(), "\x00")
	if len(got) != len(values) {
		t.Fatalf("git reads %d values of %d", len(got), len(values))
	}
	for i := range values {
		if got[i] != values[i] {
			t.Errorf("%q: git reads %q", values[i], got[i])
		}
	}
}

func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "HOME="+dir)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("git %q: %v", args, err)
	}
	return string(out)
}
