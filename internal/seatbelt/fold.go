package seatbelt

import (
	"strings"
	"sync"
)

// folded is a regular expression for every name that a case-insensitive volume takes
// for path: APFS decomposes names (NFD) and folds their case in full, so "hookſ" is
// "hooks", and "paß" is "pass". What does not exist yet can be made under any of them.
//
// Exact for ASCII. Where path has other characters any run of bytes may stand in their
// place, the ASCII character before them included, which one of them may be composed
// with; that denies some names more. HFS+ also leaves out characters that do not show
// (zero-width joiners): those are not covered.
func folded(path string) string {
	var s strings.Builder
	path = toASCII().Replace(path)
	for i := 0; i < len(path); {
		n := cluster(path[i:])
		if last := i + n - 1; other(path[last:]) == 0 {
			s.WriteString(spelled(path[i : i+n]))
			i += n
			continue
		} else { // the last letter is composed with what follows, "ss" with an accent
			i = last + other(path[last:])
		}
		s.WriteString("[^/]+")
		if strings.HasSuffix(path[:i], "\u02bc") && i < len(path) && path[i]|0x20 == 'n' {
			i++ // one character is the fold of both
		}
	}
	return s.String()
}

// other is how many bytes a run of non-ASCII characters takes, with the ASCII character
// that it may be composed with; 0 for none.
func other(path string) int {
	n := 0
	for n < len(path) && path[n] >= 0x80 {
		n++
	}
	if n > 0 {
		return n
	}
	if path == "" || path[0] == '/' {
		return 0
	}
	for n = 1; n < len(path) && path[n] >= 0x80; {
		n++
	}
	if n > 1 {
		return n
	}
	return 0
}

// foldings are the characters that are ASCII after full case folding (CaseFolding.txt of
// Unicode, status C and F) and canonical decomposition (UnicodeData.txt).
var foldings = sync.OnceValue(func() map[string][]string {
	return map[string][]string{
		";": {"\u037e"}, "`": {"\u1fef"}, "k": {"\u212a"}, "s": {"\u017f"}, "ss": {"\u00df", "\u1e9e"}, "st": {"\ufb05", "\ufb06"},
		"ff": {"\ufb00"}, "fi": {"\ufb01"}, "fl": {"\ufb02"}, "ffi": {"\ufb03"}, "ffl": {"\ufb04"},
	}
})

// toASCII folds what is ASCII then.
var toASCII = sync.OnceValue(func() *strings.Replacer {
	var pairs []string
	for to, list := range foldings() {
		for _, from := range list {
			pairs = append(pairs, from, to)
		}
	}
	return strings.NewReplacer(pairs...)
})

// longest is the length of the longest sequence of foldings.
const longest = 3

// cluster is how many bytes at the start of path must be spelled together, because
// sequences of foldings overlap there: "sst" of "ss" and "st".
func cluster(path string) int {
	end := 1
	for i := 0; i < end; i++ {
		for n := 2; n <= longest && i+n <= len(path); n++ {
			if foldings()[strings.ToLower(path[i:i+n])] != nil {
				end = max(end, i+n)
			}
		}
	}
	return end
}

// mostSpellings bounds the alternatives that one cluster is written out in.
const mostSpellings = 64

// spelled is a regular expression for one cluster.
func spelled(text string) string {
	ways := divide(strings.ToLower(text))
	switch {
	case len(ways) == 1:
		return ways[0]
	case len(ways) > mostSpellings: // "ssssssssssss": any row of its letters
		return "([" + letters(text) + "]|[^/!-~]+)+"
	}
	return "(" + strings.Join(ways, "|") + ")"
}

// divide gives a regular expression for each way to divide text into sequences that
// characters can stand for; no more than mostSpellings+1.
func divide(text string) []string {
	if text == "" {
		return []string{""}
	}
	var out []string
	// Enough is enough before the next division, too: they double with each character.
	for n := 1; n <= min(longest, len(text)) && len(out) <= mostSpellings; n++ {
		one := text[:n]
		if n > 1 && foldings()[one] == nil {
			continue
		}
		for _, rest := range divide(text[n:]) {
			if len(out) > mostSpellings {
				return out
			}
			out = append(out, unit(one)+rest)
		}
	}
	return out
}

// unit is one character, or all that stand for one sequence.
func unit(text string) string {
	alternatives := append([]string(nil), foldings()[text]...)
	if len(text) == 1 {
		alternatives = append(alternatives, either(text[0]))
	}
	if len(alternatives) == 1 {
		return alternatives[0]
	}
	return "(" + strings.Join(alternatives, "|") + ")"
}

// either is one ASCII character in both cases.
func either(c byte) string {
	switch {
	case c >= 'a' && c <= 'z':
		return "[" + string(c) + string(c-0x20) + "]"
	case c >= 'A' && c <= 'Z':
		return "[" + string(c+0x20) + string(c) + "]"
	case c >= '0' && c <= '9' || c == '/' || c == '_' || c == '-' || c == ' ':
		return string(c)
	}
	return `\` + string(c)
}

// letters are those of a text, each once, in both cases.
func letters(text string) string {
	out := ""
	for _, c := range []byte(strings.ToLower(text)) {
		if !strings.Contains(out, string(c)) {
			out += string(c) + string(c-0x20)
		}
	}
	return out
}
