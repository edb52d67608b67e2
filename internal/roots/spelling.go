package roots

import (
	"encoding/binary"
	"fmt"
	"strings"

	"sandboxd/internal/host"
)

// respelledDir gives the link that stands for a directory which the kernel calls
// otherwise than it was asked for. parent and kernel are the kernel's own paths of the
// directory that holds it and of itself. A Seatbelt rule is compared with that path, so
// a rule for "/users/U" or "/System/Volumes/Data/Users" would match nothing.
func respelledDir(parent, name, kernel string) (host.Node, bool) {
	if kernel == host.Join(parent, name) {
		return host.Node{}, false
	}
	return host.Node{Kind: host.Link, Target: kernel, Respelled: true}, true
}

// respelledName does the same for what is no directory, by its name on disk. Of a file
// with several hard links the kernel may give another one's name, so there only a
// difference in letter case counts.
func respelledName(name, disk string, n host.Node) (host.Node, bool) {
	if disk == name || disk == "" || disk == "." || disk == ".." || strings.ContainsAny(disk, "/\x00") {
		return host.Node{}, false
	}
	if n.Nlink > 1 && !strings.EqualFold(name, disk) {
		return host.Node{}, false
	}
	return host.Node{Kind: host.Link, Target: disk, Respelled: true}, true
}

// nameAttribute reads what getattrlist(2) answers for ATTR_CMN_NAME alone: the length
// of the answer, then an attrreference_t, whose offset counts from itself, then the name
// with its NUL.
func nameAttribute(b []byte) (string, error) {
	const head, reference = 4, 8
	if len(b) < head+reference {
		return "", fmt.Errorf("the answer for a name has %d bytes", len(b))
	}
	total := int64(binary.NativeEndian.Uint32(b))
	from := head + int64(int32(binary.NativeEndian.Uint32(b[head:])))
	to := from + int64(binary.NativeEndian.Uint32(b[head+4:]))
	if total > int64(len(b)) || from < head+reference || to > total || to-from < 2 {
		return "", fmt.Errorf("the answer for a name says bytes %d to %d of %d", from, to, total)
	}
	name, _, found := strings.Cut(string(b[from:to]), "\x00")
	if !found || name == "" {
		return "", fmt.Errorf("the answer for a name has no end")
	}
	return name, nil
}
