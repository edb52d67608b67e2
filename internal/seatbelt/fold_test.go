package seatbelt

import (
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
	"pgregory.net/rapid"
)

// key is the same for two names that a case-insensitive volume takes for one.
func key(name string) string {
	return norm.NFD.String(cases.Fold().String(norm.NFD.String(name)))
}

func matches(t testing.TB, path, name string) bool {
	t.Helper()
	re, err := regexp.Compile("^" + folded(path) + "$")
	if err != nil {
		t.Fatalf("%q: %v", path, err)
	}
	return re.MatchString(name)
}

func ascii(s string) bool { return !strings.ContainsFunc(s, func(r rune) bool { return r >= 0x80 }) }

// Every character that folds to ASCII is in the table, and so the table is complete.
func TestFoldingsAreComplete(t *testing.T) {
	found := 0
	for r := rune(0x80); r <= utf8.MaxRune; r++ {
		if !utf8.ValidRune(r) {
			continue
		}
		k := key(string(r))
		if k == "" || !ascii(k) {
			continue
		}
		found++
		if len(k) > longest || !matches(t, "/a"+k+"z", "/A"+string(r)+"Z") {
			t.Errorf("%q is %q, and the pattern for it does not match", r, k)
		}
	}
	listed := 0
	for _, list := range foldings() {
		listed += len(list)
	}
	if found != listed {
		t.Errorf("%d characters fold to ASCII, %d are listed", found, listed)
	}
}

// pieces are what names are drawn from: the same keys by several spellings.
var pieces = []string{"s", "S", "ss", "\u00df", "\u1e9e", "\u017f", "t", "st", "\ufb05", "\ufb06", "f", "i", "l", "\ufb00", "\ufb01",
	"\ufb02", "\ufb03", "\ufb04", "k", "\u212a", "e", "E", "\u00e9", "e\u0301", "\u00c9", "\u0301", "n", "\u02bcn", "\u0149", "\u01f0", "j\u030c", ".", "-", "7"}

func genName(t *rapid.T, label string) string {
	return "/" + strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 1, 6).Draw(t, label), "")
}

// No spelling of a name escapes its pattern.
func TestPropertyEverySpellingMatches(t *testing.T) {
	same := 0
	rapid.Check(t, func(t *rapid.T) {
		a := genName(t, "a")
		// b has the key of a: some of its pieces are exchanged for others with their key.
		b := respell(t, a)
		if key(a) != key(b) {
			return // an accent went to another letter
		}
		if a != b {
			same++
		}
		re, err := regexp.Compile("^" + folded(a) + "$")
		if err != nil {
			t.Fatalf("%q: %v", a, err)
		}
		if !re.MatchString(b) {
			t.Fatalf("%q is another spelling of %q, and %s does not match it", b, a, folded(a))
		}
	})
	if same < 50 {
		t.Errorf("only %d pairs", same)
	}
}

// respell builds a name with the same key from other pieces.
func respell(t *rapid.T, name string) string {
	k, out := key(name)[1:], "/"
	for k != "" {
		var fits []string
		for _, p := range pieces {
			if strings.HasPrefix(k, key(p)) {
				fits = append(fits, p)
			}
		}
		p := rapid.SampledFrom(fits).Draw(t, "piece")
		out, k = out+p, k[len(key(p)):]
	}
	return out
}

// Of ASCII names the pattern matches those that are the same, and no others.
func TestPropertyNoOtherNameMatches(t *testing.T) {
	plain := rapid.StringMatching(`/[sStTfFiIlLkKa._-]{1,6}`)
	rapid.Check(t, func(t *rapid.T) {
		a, b := plain.Draw(t, "a"), rapid.OneOf(plain, rapid.Custom(func(t *rapid.T) string { return genName(t, "b") })).Draw(t, "b")
		re, err := regexp.Compile("^" + folded(a) + "$")
		if err != nil {
			t.Fatalf("%q: %v", a, err)
		}
		if re.MatchString(b) != (key(a) == key(b)) {
			t.Fatalf("%q and %q: matched %t by %s", a, b, re.MatchString(b), folded(a))
		}
	})
}

func TestFolded(t *testing.T) {
	for _, c := range []struct {
		path, name string
		want       bool
	}{
		{"/ws/.git/hooks", "/WS/.Git/HOOKS", true},
		{"/ws/.git/hooks", "/ws/.git/hook\u017f", true},
		{"/ws/.git/hooks", "/ws/.git/hook", false},
		{"/ws/.git/hooks", "/ws/xgit/hooks", false},
		{"/ws/pass", "/ws/pa\u00df", true},
		{"/ws/\u00e9t\u00e9.key", "/ws/e\u0301te\u0301.key", true},
		{"/ws/\u00e9t\u00e9.key", "/ws/sub/te.key", false},
		{"/ws/" + strings.Repeat("s", 200), "/ws/" + strings.Repeat("\u00df", 100), true},
		{"/ws/" + strings.Repeat("s", 200), "/ws/x", false},
		{"/ws/\xff\xfe", "/ws/\xff\xfe", true},
	} {
		if got := matches(t, c.path, c.name); got != c.want {
			t.Errorf("%q and %q: %t", c.path, c.name, got)
		}
	}
	if n := len(folded("/" + strings.Repeat("s", 200))); n > 100 {
		t.Errorf("a pattern of %d bytes", n)
	}
}
