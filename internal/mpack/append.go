package mpack

import (
	"encoding/binary"
	"math"
	"slices"
)

// The Append functions write the smallest encoding that the msgpack specification
// allows. Lengths are those of values in memory and below 2^32.

// AppendMap writes the header of a map with n entries.
func AppendMap(b []byte, n int) []byte { return appendCount(b, n, 0x80, 0xde) }

// AppendArray writes the header of an array with n entries.
func AppendArray(b []byte, n int) []byte { return appendCount(b, n, 0x90, 0xdc) }

func appendCount(b []byte, n int, fix, wide byte) []byte {
	switch {
	case n < 16:
		return append(b, fix|byte(n))
	case n <= math.MaxUint16:
		return binary.BigEndian.AppendUint16(append(b, wide), uint16(n))
	default:
		return binary.BigEndian.AppendUint32(append(b, wide+1), uint32(n))
	}
}

// AppendStr writes a string, which the caller knows to be UTF-8.
func AppendStr(b []byte, s string) []byte {
	if len(s) < 32 {
		return append(append(b, 0xa0|byte(len(s))), s...)
	}
	return append(appendLen(b, len(s), 0xd9), s...)
}

// AppendBin writes binary data; nil is written as empty.
func AppendBin(b, data []byte) []byte {
	return append(AppendBinHeader(b, len(data)), data...)
}

// AppendBinHeader writes what stands before n bytes of binary data.
func AppendBinHeader(b []byte, n int) []byte { return appendLen(b, n, 0xc4) }

// appendLen writes a length of 8, 16 or 32 bits behind the code for its width.
func appendLen(b []byte, n int, code byte) []byte {
	switch {
	case n <= math.MaxUint8:
		return append(b, code, byte(n))
	case n <= math.MaxUint16:
		return binary.BigEndian.AppendUint16(append(b, code+1), uint16(n))
	default:
		return binary.BigEndian.AppendUint32(append(b, code+2), uint32(n))
	}
}

// AppendUint writes an unsigned integer.
func AppendUint(b []byte, v uint64) []byte {
	switch {
	case v <= math.MaxInt8:
		return append(b, byte(v))
	case v <= math.MaxUint8:
		return append(b, 0xcc, byte(v))
	case v <= math.MaxUint16:
		return binary.BigEndian.AppendUint16(append(b, 0xcd), uint16(v))
	case v <= math.MaxUint32:
		return binary.BigEndian.AppendUint32(append(b, 0xce), uint32(v))
	default:
		return binary.BigEndian.AppendUint64(append(b, 0xcf), v)
	}
}

// AppendInt writes an integer; one that is not negative as AppendUint does.
func AppendInt(b []byte, v int64) []byte {
	switch {
	case v >= 0:
		return AppendUint(b, uint64(v))
	case v >= -32:
		return append(b, byte(v))
	case v >= math.MinInt8:
		return append(b, 0xd0, byte(v))
	case v >= math.MinInt16:
		return binary.BigEndian.AppendUint16(append(b, 0xd1), uint16(v))
	case v >= math.MinInt32:
		return binary.BigEndian.AppendUint32(append(b, 0xd2), uint32(v))
	default:
		return binary.BigEndian.AppendUint64(append(b, 0xd3), uint64(v))
	}
}

// AppendBool writes a boolean.
func AppendBool(b []byte, v bool) []byte {
	if v {
		return append(b, 0xc3)
	}
	return append(b, 0xc2)
}

// AppendStrs writes an array of strings; nil is written as empty.
func AppendStrs(b []byte, list []string) []byte {
	b = AppendArray(b, len(list))
	for _, s := range list {
		b = AppendStr(b, s)
	}
	return b
}

// AppendStrMap writes a map of strings with its keys sorted by their bytes; nil is
// written as empty.
func AppendStrMap(b []byte, m map[string]string) []byte {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	b = AppendMap(b, len(keys))
	for _, k := range keys {
		b = AppendStr(AppendStr(b, k), m[k])
	}
	return b
}
