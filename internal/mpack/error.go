package mpack

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// Error says at which key path the input is wrong, what was found and what was
// expected. It never holds a value of the input, only names of keys.
type Error struct {
	Path string // "limits.pids", "mounts[2].access"; "" is the outermost value
	Msg  string
}

// Error gives "limits.pids: found nil, expected unsigned integer".
func (e *Error) Error() string {
	if e.Path == "" {
		return e.Msg
	}
	return e.Path + ": " + e.Msg
}

// segment is one step of a key path: a key, or an index where index is not -1.
type segment struct {
	key   string
	index int
}

func renderPath(path []segment) string {
	var b strings.Builder
	for _, s := range path {
		if s.index >= 0 {
			b.WriteString("[" + strconv.Itoa(s.index) + "]")
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('.')
		}
		b.WriteString(Key(s.key))
	}
	return b.String()
}

// maxKey bounds how much of a peer's key a message repeats.
const maxKey = 64

// Key spells one key as the paths of errors do: quoted where it could be mistaken for
// more than one step of a path or could drive a terminal, and cut where it is long.
func Key(key string) string {
	cut := key
	if len(cut) > maxKey {
		cut = cut[:maxKey]
		for len(cut) > 0 && !utf8.ValidString(cut) {
			cut = cut[:len(cut)-1]
		}
		cut += "..."
	}
	if key != "" && len(key) <= maxKey && strings.Trim(key, plainKey) == "" {
		return key
	}
	return strconv.QuoteToASCII(cut)
}

const plainKey = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"
