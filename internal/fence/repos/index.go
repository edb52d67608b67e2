package repos

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"path/filepath"
)

// maxIndex bounds the index that is read, in bytes: about 600,000 files.
const maxIndex = 64 << 20

// Bounds of what an index may say. Version 4 has each path as a change of the one before
// it, so that a few bytes of every entry can stand for all the megabytes of the first.
const (
	maxPath  = 4096    // PATH_MAX of Linux: nothing longer can be there
	maxLinks = 1 << 14 // other repositories
)

// gitlink is the mode of an entry that stands for another repository's commit.
const gitlink = 0o160000

// The fixed part of an entry: times, device, inode, mode, owner, size; then the
// object's name, whose length is that of the repository's hash; then flags.
const (
	entryMode  = 24
	entryFixed = 40
)

// Gitlinks lists the paths, relative to the work tree, that a git directory's index
// has for other repositories: `git status` starts git in each of them that has a
// .git, with the configuration there. See gitformat-index(5). ok is false for an
// index that cannot be read to its end; none at all is an empty one.
func Gitlinks(dir string) (paths []string, ok bool) {
	at := filepath.Join(dir, "index")
	for range 2 { // a split index, and the one that it adds to
		b, err := ReadSmall(at, maxIndex)
		if err != nil {
			return paths, !exists(at)
		}
		index, ok := parseIndex(b, 20)
		if !ok {
			if other, fits := parseIndex(b, 32); fits {
				index, ok = other, true
			}
		}
		paths = append(paths, index.links...)
		if !ok || index.base == "" {
			return paths, ok
		}
		at = filepath.Join(dir, "sharedindex."+index.base)
	}
	return paths, true
}

// indexFile is what is wanted of an index.
type indexFile struct {
	links []string
	base  string // the name of the index that this one adds to, "" for none
}

// parseIndex reads an index whose objects have names of so many bytes. All of it has
// to fit: a wrong length is not taken for an index.
func parseIndex(index []byte, hash int) (f indexFile, ok bool) {
	if len(index) < 12 || string(index[:4]) != "DIRC" {
		return f, false
	}
	version, count := binary.BigEndian.Uint32(index[4:]), binary.BigEndian.Uint32(index[8:])
	if version < 2 || version > 4 {
		return f, false
	}
	rest, last := index[12:], []byte(nil)
	for ; count > 0; count-- {
		size := entryFixed + hash + 2
		if len(rest) < size {
			return f, false
		}
		mode := binary.BigEndian.Uint32(rest[entryMode:])
		if rest[size-2]&0x40 != 0 { // extended flags
			size += 2
		}
		path, n := entryPath(rest, size, last, version)
		if n == 0 || len(path) > maxPath {
			return f, false
		}
		if mode&0o170000 == gitlink {
			if len(f.links) == maxLinks {
				return f, false
			}
			f.links = append(f.links, string(path))
		}
		rest, last = rest[n:], path
	}
	for len(rest) > hash { // extensions, up to the checksum
		if len(rest) < 8 {
			return f, false
		}
		n := 8 + int(binary.BigEndian.Uint32(rest[4:]))
		if n > len(rest)-hash {
			return f, false
		}
		if string(rest[:4]) == "link" && n >= 8+hash {
			f.base = hex.EncodeToString(rest[8 : 8+hash])
		}
		rest = rest[n:]
	}
	return f, len(rest) == hash
}

// entryPath reads a path and gives the length of its entry, 0 for a broken one.
func entryPath(entry []byte, at int, last []byte, version uint32) (path []byte, n int) {
	if at > len(entry) {
		return nil, 0
	}
	if version == 4 { // cut so many bytes from the last path, append the rest
		cut, used := varint(entry[at:])
		at += used
		if used == 0 || cut > uint64(len(last)) {
			return nil, 0
		}
		path = append(path, last[:len(last)-int(cut)]...)
	}
	end := bytes.IndexByte(entry[at:], 0)
	if end < 0 {
		return nil, 0
	}
	path, n = append(path, entry[at:at+end]...), at+end+1
	if version < 4 { // one to eight NUL bytes up to a multiple of eight
		n = (at + end + 8) &^ 7
	}
	if n > len(entry) {
		return nil, 0
	}
	return path, n
}

// varint is the offset encoding of pack files: each continued byte counts one more.
func varint(b []byte) (value uint64, used int) {
	for i, c := range b {
		if i > 8 {
			break
		}
		if i > 0 {
			value = (value + 1) << 7
		}
		value |= uint64(c & 0x7f)
		if c&0x80 == 0 {
			return value, i + 1
		}
	}
	return 0, 0
}
