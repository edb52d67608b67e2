package landlock

import (
	"strconv"
	"strings"

	"sandboxd/internal/stage2/spec"
)

// fsRights is a set of LANDLOCK_ACCESS_FS_* (linux/landlock.h).
type fsRights uint64

const (
	execute fsRights = 1 << iota
	writeFile
	readFile
	readDir
	removeDir
	removeFile
	makeChar
	makeDir
	makeReg
	makeSock
	makeFifo
	makeBlock
	makeSym
	refer       // ABI 2
	truncate    // ABI 3
	ioctlDev    // ABI 5
	resolveUnix // ABI 9
)

var fsNames = [...]string{
	"execute", "write_file", "read_file", "read_dir", "remove_dir", "remove_file",
	"make_char", "make_dir", "make_reg", "make_sock", "make_fifo", "make_block",
	"make_sym", "refer", "truncate", "ioctl_dev", "resolve_unix",
}

// MaxABI is the newest ABI whose rights are known here. A newer kernel is used,
// and reported, as this one.
const MaxABI = 11

// handled is what a ruleset of one ABI restricts.
type handled struct {
	fs    fsRights
	net   uint64 // LANDLOCK_ACCESS_NET_*
	scope uint64 // LANDLOCK_SCOPE_*
}

// handledBy gives every right of an ABI; TestRightsAreTheLibrarys compares it with
// go-landlock's table, which is not linked: it costs every command its start-up.
func handledBy(abi int) handled {
	var h handled
	switch {
	case abi < 1:
		return h
	case abi >= 9:
		h.fs = 1<<17 - 1
	case abi >= 5:
		h.fs = 1<<16 - 1
	case abi >= 3:
		h.fs = 1<<15 - 1
	case abi == 2:
		h.fs = 1<<14 - 1
	default:
		h.fs = 1<<13 - 1
	}
	switch {
	case abi >= 10:
		h.net = 1<<4 - 1 // bind and connect or send, TCP and UDP
	case abi >= 4:
		h.net = 1<<2 - 1 // bind and connect, TCP
	}
	if abi >= 6 {
		h.scope = 1<<2 - 1 // abstract sockets, signals
	}
	return h
}

// fileRights are the only rights that may be granted on an inode that is no
// directory; any other is EINVAL (landlock_add_rule(2)).
const fileRights = execute | writeFile | readFile | truncate | ioctlDev | resolveUnix

// accessRights is what an access means for a directory and all below it.
//
// No grant has make_char or make_block: without them a device node cannot be made
// in degraded mode either, where a root caller still has CAP_MKNOD.
func accessRights(a spec.Access) fsRights {
	const read = execute | readFile | readDir
	switch a {
	case spec.AccessRead:
		return read
	case spec.AccessConnect:
		return read | resolveUnix
	case spec.AccessWrite:
		return read | writeFile | truncate | removeDir | removeFile | makeDir | makeReg |
			makeSock | makeFifo | makeSym | refer | resolveUnix
	case spec.AccessDevice:
		return readFile | writeFile | readDir | truncate | ioctlDev
	}
	return 0
}

// grantable is what of some rights this ABI and the inode's type have: a directory's
// right on a file is EINVAL.
func grantable(want fsRights, abi int, dir bool) fsRights {
	want &= handledBy(abi).fs
	if !dir {
		want &= fileRights
	}
	return want
}

// lacking names the file-system rights that an ABI does not know, with the ABI
// that brought each; "" where there is none.
func lacking(abi int) string {
	var names []string
	for _, r := range []struct {
		right fsRights
		since int
	}{{refer, 2}, {truncate, 3}, {ioctlDev, 5}, {resolveUnix, 9}} {
		if handledBy(abi).fs&r.right == 0 {
			names = append(names, r.right.String()+" (ABI "+strconv.Itoa(r.since)+")")
		}
	}
	return strings.Join(names, ", ")
}

func (r fsRights) String() string {
	var names []string
	for i, name := range fsNames {
		if r&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, ",")
}
