package stage2

import (
	"bytes"
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// program is a 64-bit little-endian ELF file whose second program header is PT_INTERP,
// with fields changed as a command would.
func program(change func(b []byte)) []byte {
	const name = "/lib/ld.so"
	b := make([]byte, 64+2*56, 512)
	copy(b, "\x7fELF\x02\x01")
	le := binary.LittleEndian
	le.PutUint64(b[32:], 64) // e_phoff
	le.PutUint16(b[54:], 56) // e_phentsize
	le.PutUint16(b[56:], 2)  // e_phnum
	second := b[64+56:]
	le.PutUint32(second, 3) // PT_INTERP
	le.PutUint64(second[8:], uint64(len(b)))
	le.PutUint64(second[32:], uint64(len(name)+1))
	b = append(b, name+"\x00"...)
	change(b)
	return b
}

// What a program says of its interpreter is the command's to forge: only a message is
// made of it, which is bounded, or nothing.
func TestInterpreter(t *testing.T) {
	le := binary.LittleEndian
	second := 64 + 56
	dir := t.TempDir()
	for _, c := range []struct {
		name, want string
		file       []byte
	}{
		{"a program", "/lib/ld.so", program(func([]byte) {})},
		{"a script", "/bin/x", []byte("#! /bin/x -a\nrest")},
		{"a script of one line", "/bin/x", []byte("#!/bin/x")},
		{"a script that names nothing", "", []byte("#!\n/bin/x")},
		{"an empty file", "", nil},
		{"a cut header", "", program(func([]byte) {})[:63]},
		{"a cut table", "", program(func([]byte) {})[:70]},
		{"32 bits", "", program(func(b []byte) { b[4] = 1 })},
		{"big-endian", "", program(func(b []byte) { b[5] = 2 })},
		{"small entries", "", program(func(b []byte) { le.PutUint16(b[54:], 55) })},
		{"a table beyond everything", "", program(func(b []byte) { le.PutUint64(b[32:], 1<<63) })},
		{"a table beyond the end", "", program(func(b []byte) { le.PutUint64(b[32:], 1<<40) })},
		{"many entries", "/lib/ld.so", program(func(b []byte) { le.PutUint16(b[56:], 65535) })},
		{"no such entry", "", program(func(b []byte) { le.PutUint32(b[second:], 1); le.PutUint16(b[56:], 65535) })},
		{"a name beyond everything", "", program(func(b []byte) { le.PutUint64(b[second+8:], 1<<63) })},
		{"a name beyond the end", "", program(func(b []byte) { le.PutUint64(b[second+8:], 1<<20) })},
		{"a name of any length", "", program(func(b []byte) { le.PutUint64(b[second+32:], 1<<62) })},
		{"a name of no length", "", program(func(b []byte) { le.PutUint64(b[second+32:], 0) })},
	} {
		path := filepath.Join(dir, "file")
		if err := os.WriteFile(path, c.file, 0o755); err != nil {
			t.Fatal(err)
		}
		if got := interpreter(path); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	if got := interpreter(filepath.Join(dir, "none")) + interpreter(dir); got != "" {
		t.Errorf("what cannot be read has the interpreter %q", got)
	}
}

func FuzzInterpreter(f *testing.F) {
	f.Add(program(func([]byte) {}))
	f.Add(program(func(b []byte) { binary.LittleEndian.PutUint64(b[32:], 1<<39) }))
	f.Fuzz(func(t *testing.T, file []byte) {
		r := bytes.NewReader(file)
		got := elfInterpreter(file, func(b []byte, off int64) error {
			if _, err := r.ReadAt(b, off); err != io.EOF { // pread(2) is short at the end
				return err
			}
			return nil
		})
		if len(got) > unix.PathMax || strings.Contains(got, "\x00") {
			t.Errorf("an interpreter of %d bytes: %.100q", len(got), got)
		}
	})
}
