package plan

import "sandboxd/internal/host"

// access is what a class lets a command do, for merging.
type access uint8

const (
	accessNone access = iota
	accessPrivate
	accessRead
	accessWrite
)

func (c Class) access() access {
	switch c {
	case SystemRO, Readable, MountRO:
		return accessRead
	case ScratchPath, Writable, MountRW, Pin:
		return accessWrite
	case ScratchTmpfs:
		return accessPrivate
	}
	return accessNone
}

// String is the class's name in explain and in goldens.
func (c Class) String() string {
	names := [...]string{"", "root-tmpfs", "system-ro", "readable", "scratch-tmpfs", "scratch-path", "writable",
		"link", "pin", "proc", "dev", "mask-dir", "mask-file", "mount-ro", "mount-rw", "seal"}
	if int(c) < len(names) {
		return names[c]
	}
	return "unknown"
}

func isDevice(k host.Kind) bool { return k == host.CharDevice || k == host.BlockDevice }
