package jsonfile

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tailscale/hujson"

	"sandboxd/internal/mpack"
	"sandboxd/internal/policy"
)

// translator writes a parsed document as msgpack and remembers where each key
// path stands in the text.
type translator struct {
	text   []byte
	out    []byte
	places map[string][]place // more than one where a key is repeated
}

// place holds offsets of a value and of the name before it.
type place struct{ name, value int }

// maxPlaces bounds the key paths that are remembered. A valid document has no more: each
// entry of a list is one, and of a mount four.
const maxPlaces = 5 * policy.MaxEntries

func (t *translator) value(v hujson.Value, path string, name int) error {
	if at, known := t.places[path]; known || len(t.places) < maxPlaces {
		t.places[path] = append(at, place{name, v.StartOffset})
	}
	switch val := v.Value.(type) {
	case *hujson.Object:
		t.out = mpack.AppendMap(t.out, len(val.Members))
		for _, m := range val.Members {
			key, err := t.str(m.Name, path)
			if err != nil {
				return err
			}
			t.out = mpack.AppendStr(t.out, key)
			if err := t.value(m.Value, join(path, key), m.Name.StartOffset); err != nil {
				return err
			}
		}
	case *hujson.Array:
		t.out = mpack.AppendArray(t.out, len(val.Elements))
		for i, e := range val.Elements {
			if err := t.value(e, fmt.Sprintf("%s[%d]", path, i), e.StartOffset); err != nil {
				return err
			}
		}
	case hujson.Literal:
		return t.literal(v, val, path)
	}
	return nil
}

func (t *translator) literal(v hujson.Value, lit hujson.Literal, path string) error {
	switch lit.Kind() {
	case '"':
		s, err := t.str(v, path)
		t.out = mpack.AppendStr(t.out, s)
		return err
	case '0':
		return t.number(v, string(lit), path)
	case 'n':
		t.out = append(t.out, 0xc0)
	default:
		t.out = mpack.AppendBool(t.out, lit.Bool())
	}
	return nil
}

// number keeps an integer exact; whatever else JSON calls a number becomes a
// float, which no key takes.
func (t *translator) number(v hujson.Value, s, path string) error {
	if u, err := strconv.ParseUint(s, 10, 64); err == nil {
		t.out = mpack.AppendUint(t.out, u)
		return nil
	}
	if i, err := strconv.ParseInt(s, 10, 64); err == nil {
		t.out = mpack.AppendInt(t.out, i)
		return nil
	}
	if !strings.ContainsAny(s, ".eE") {
		return newError(t.text, v.StartOffset, path, fmt.Sprintf("found an integer beyond 64 bits, expected at most %d", int64(math.MaxInt64)))
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		f = math.Inf(1) // out of range; the kind of value is what matters
	}
	t.out = binary.BigEndian.AppendUint64(append(t.out, 0xcb), math.Float64bits(f))
	return nil
}

// str refuses what encoding/json would replace by U+FFFD without a word: the
// policy would then name another path than the text does.
func (t *translator) str(v hujson.Value, path string) (string, error) {
	lit, _ := v.Value.(hujson.Literal)
	if !utf8.Valid(lit) {
		return "", newError(t.text, v.StartOffset, path, "found invalid UTF-8, expected UTF-8 string")
	}
	if loneSurrogate(string(lit)) {
		return "", newError(t.text, v.StartOffset, path, `found half of a \u surrogate pair, expected both halves`)
	}
	return lit.String(), nil
}

func loneSurrogate(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			continue
		}
		i++
		u, ok := escape(s, i)
		if !ok {
			continue
		}
		i += 4
		if u < 0xd800 || u > 0xdfff {
			continue
		}
		if u > 0xdbff || i+2 >= len(s) || s[i+1] != '\\' {
			return true
		}
		if low, ok := escape(s, i+2); !ok || low < 0xdc00 || low > 0xdfff {
			return true
		}
		i += 6
	}
	return false
}

// escape reads "uXXXX" at i.
func escape(s string, i int) (uint64, bool) {
	if i+5 > len(s) || s[i] != 'u' {
		return 0, false
	}
	u, err := strconv.ParseUint(s[i+1:i+5], 16, 16)
	return u, err == nil
}

// join spells a key path as the msgpack reader does.
func join(path, key string) string {
	if path == "" {
		return mpack.Key(key)
	}
	return path + "." + mpack.Key(key)
}

// find gives the offset that an error is about: the value, the name where the name
// is what is wrong, or the closest thing around what is missing.
func (t *translator) find(e *policy.Error) int {
	path := e.Path
	for {
		at := t.places[path]
		switch {
		case len(at) == 0:
			path = path[:max(strings.LastIndexAny(path, ".["), 0)]
		case path == e.Path && strings.HasPrefix(e.Msg, "duplicate key"):
			return at[min(1, len(at)-1)].name
		case path == e.Path && strings.HasPrefix(e.Msg, "unknown key"):
			return at[0].name
		default:
			return at[0].value
		}
	}
}

// lines gives the line of every value; the text is walked once.
func (t *translator) lines() Places {
	starts := []int{0} // of each line
	for i, c := range t.text {
		if c == '\n' {
			starts = append(starts, i+1)
		}
	}
	out := Places{}
	for path, at := range t.places {
		n, found := slices.BinarySearch(starts, at[0].value)
		if !found {
			n--
		}
		out[path] = n + 1
	}
	return out
}
