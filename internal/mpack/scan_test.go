package mpack

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// A Scan reads what the Append functions write.
func TestScanReadsWhatIsWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.OneOf(rapid.Uint64(), rapid.SampledFrom([]uint64{0, 127, 128, 255, 256, 65535, 65536, math.MaxUint32, math.MaxUint32 + 1})).Draw(t, "number")
		data := make([]byte, rapid.SampledFrom([]int{0, 1, 255, 256, 65535, 65536}).Draw(t, "bytes"))
		yes := rapid.Bool().Draw(t, "boolean")
		b := AppendBool(AppendBin(AppendUint(AppendStr(nil, "key"), n), data), yes)
		s := NewScan(b)
		s.Expect("\xa3key")
		if s.Has("\xa3key") || s.Uint() != n || len(s.Take(s.BinLen())) != len(data) || s.Bool() != yes || !s.Done() {
			t.Fatalf("other values, and %d bytes left", len(s.Rest()))
		}
		short := NewScan(b[:rapid.IntRange(0, len(b)-1).Draw(t, "cut")])
		short.Expect("\xa3key")
		short.Uint()
		short.Take(short.BinLen())
		if short.Bool(); short.OK() || short.Done() {
			t.Fatal("cut short, and taken")
		}
	})
}

// After something unexpected nothing is taken any more.
func TestScanFailsForGood(t *testing.T) {
	for name, take := range map[string]func(*Scan){
		"bytes":   func(s *Scan) { s.Expect("\x02") },
		"number":  func(s *Scan) { s.rest = []byte{0xd0, 1}; s.Uint() },
		"length":  func(s *Scan) { s.BinLen() },
		"boolean": func(s *Scan) { s.Bool() },
		"too few": func(s *Scan) { s.Take(5) },
		"fewer":   func(s *Scan) { s.Take(-1) },
	} {
		s := NewScan([]byte{1, 0xc3, 0xc4, 1})
		if take(&s); s.OK() || s.Has("\x01") || s.Uint() != 0 || s.BinLen() != 0 || s.Take(0) != nil || s.Bool() || s.Done() {
			t.Errorf("%s: goes on", name)
		}
	}
}
