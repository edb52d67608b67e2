package stage2

import (
	"bytes"
	"encoding/binary"

	"golang.org/x/sys/unix"

	"sandboxd/internal/stage2/spec"
)

// execFailure says why execve failed, with what its errno hides: ENOENT for a file
// that is there is a missing interpreter (execve(2)).
func execFailure(path string, err error) *spec.Failure {
	f := failure(spec.StepExec, "cannot execute "+quoted(path), err)
	switch errnoOf(err) {
	case unix.ENOENT, unix.EACCES:
		if interp := interpreter(path); interp != "" && unix.Access(interp, unix.X_OK) != nil {
			f.Msg += "; its interpreter " + quoted(interp) + " is not there or cannot be executed in the jail"
		}
	case unix.ENOEXEC:
		// No shell is tried in its place, unlike execvp(3): what runs is what was named.
		f.Msg += "; it is no program for this machine and has no #! line (to run it as a script, name the shell: sh FILE)"
	case unix.E2BIG:
		f.Msg += "; the arguments and variables are too large together, or one is over 128 KiB"
	case unix.ETXTBSY:
		f.Msg += "; something still has it open for writing"
	}
	return f
}

// interpreter reads the name after #! or the PT_INTERP of an ELF file, or "".
func interpreter(path string) string {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return ""
	}
	defer unix.Close(fd)
	head := make([]byte, 4096)
	n, err := unix.Pread(fd, head, 0)
	if err != nil {
		return ""
	}
	head = head[:n]
	if bytes.HasPrefix(head, []byte("#!")) {
		return scriptInterpreter(head[2:])
	}
	return elfInterpreter(head, func(b []byte, off int64) error {
		_, err := unix.Pread(fd, b, off)
		return err
	})
}

func scriptInterpreter(line []byte) string {
	line, _, _ = bytes.Cut(line, []byte("\n"))
	if fields := bytes.Fields(line); len(fields) > 0 {
		return string(fields[0])
	}
	return ""
}

// elfInterpreter reads a 64-bit little-endian program header table (elf(5)); other
// files have no interpreter that would explain anything here.
func elfInterpreter(head []byte, read func([]byte, int64) error) string {
	const (
		ehdr, phdr = 64, 56
		ptInterp   = 3
	)
	if len(head) < ehdr || !bytes.HasPrefix(head, []byte("\x7fELF\x02\x01")) {
		return ""
	}
	le := binary.LittleEndian
	off, size, count := le.Uint64(head[32:]), uint64(le.Uint16(head[54:])), int(le.Uint16(head[56:]))
	if size < phdr || off > 1<<40 {
		return ""
	}
	for i := range count {
		entry := make([]byte, phdr)
		if read(entry, int64(off+uint64(i)*size)) != nil {
			return ""
		}
		if le.Uint32(entry) != ptInterp {
			continue
		}
		at, n := le.Uint64(entry[8:]), le.Uint64(entry[32:])
		if at > 1<<40 || n > unix.PathMax {
			return ""
		}
		name := make([]byte, n)
		if read(name, int64(at)) != nil {
			return ""
		}
		name, _, _ = bytes.Cut(name, []byte{0})
		return string(name)
	}
	return ""
}
