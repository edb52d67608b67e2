package mpack

import "github.com/vmihailenco/msgpack/v5/msgpcode"

// family groups the first bytes of values by type; its text is for messages.
type family string

const (
	famNil     family = "nil"
	famBool    family = "boolean"
	famInt     family = "integer"
	famFloat   family = "float"
	famStr     family = "string"
	famBin     family = "binary"
	famArray   family = "array"
	famMap     family = "map"
	famExt     family = "extension"
	famInvalid family = "invalid byte 0xc1"
)

// familyOf classifies a first byte as the msgpack specification's format table does.
func familyOf(c byte) family {
	switch {
	case msgpcode.IsFixedNum(c):
		return famInt
	case msgpcode.IsFixedMap(c):
		return famMap
	case msgpcode.IsFixedArray(c):
		return famArray
	case msgpcode.IsFixedString(c):
		return famStr
	}
	switch c {
	case msgpcode.Nil:
		return famNil
	case msgpcode.False, msgpcode.True:
		return famBool
	case msgpcode.Float, msgpcode.Double:
		return famFloat
	case msgpcode.Str8, msgpcode.Str16, msgpcode.Str32:
		return famStr
	case msgpcode.Bin8, msgpcode.Bin16, msgpcode.Bin32:
		return famBin
	case msgpcode.Array16, msgpcode.Array32:
		return famArray
	case msgpcode.Map16, msgpcode.Map32:
		return famMap
	case 0xc1: // the one byte the specification never uses
		return famInvalid
	}
	if msgpcode.IsExt(c) {
		return famExt
	}
	return famInt // 0xcc to 0xd3, all that is left
}

// signed tells an integer's encodings with a sign from those without.
func signed(c byte) bool {
	switch c {
	case msgpcode.Int8, msgpcode.Int16, msgpcode.Int32, msgpcode.Int64:
		return true
	}
	return msgpcode.IsFixedNum(c)
}
