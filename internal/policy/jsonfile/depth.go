package jsonfile

import "bytes"

// maxDepth is how deep a document may nest; a valid one has 3 levels. The bound is
// the wire's.
const maxDepth = 16

// tooDeep finds the bracket that nests too deep, before a recursive reader sees
// the text. Brackets in strings and comments do not count.
func tooDeep(b []byte) (at int, deep bool) {
	depth := 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			i += skipString(b[i:])
		case '/':
			i += skipComment(b[i:])
		case '{', '[':
			depth++
			if depth > maxDepth {
				return i, true
			}
		case '}', ']':
			depth--
		}
	}
	return 0, false
}

// skipString gives the offset of a string's last byte from its first.
func skipString(b []byte) int {
	for i := 1; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i
		}
	}
	return len(b)
}

// skipComment gives the offset of a comment's last byte from its first, or 0 where
// there is none.
func skipComment(b []byte) int {
	end, opening := "", 2
	switch {
	case bytes.HasPrefix(b, []byte("//")):
		end = "\n"
	case bytes.HasPrefix(b, []byte("/*")):
		end = "*/"
	default:
		return 0
	}
	i := bytes.Index(b[opening:], []byte(end))
	if i < 0 {
		return len(b)
	}
	return opening + i + len(end) - 1
}
