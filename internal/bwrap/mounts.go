package bwrap

import (
	"slices"

	"sandboxd/internal/plan"
)

// Mount is one mount point that the arguments make, for whoever looks at the jail's
// mount table afterwards.
type Mount struct {
	Path     string
	ReadOnly bool
	Tree     bool // a recursive bind: the host's mounts below it come along
	Fresh    bool // a file system made for this jail
	Optional bool // depends on the bubblewrap
}

// Dropped is what the arguments take from the command.
type Dropped struct {
	Caps   bool // every capability
	Userns bool // the way to a user namespace
}

// devices are bound one by one into the /dev that bubblewrap makes, where the host
// has them, and console only where bubblewrap's output is a terminal (its bubblewrap.c,
// SETUP_MOUNT_DEV).
var devices = []string{"null", "zero", "full", "random", "urandom", "tty", "console"}

// mounts says what the operations mount, in their order. It mirrors operation.
func mounts(ops []plan.Op) []Mount {
	sealed := slices.ContainsFunc(ops, func(op plan.Op) bool { return op.Class == plan.Seal })
	var out []Mount
	add := func(path string, m Mount) {
		m.Path = path
		out = append(out, m)
	}
	for _, op := range ops {
		switch op.Class {
		case plan.RootTmpfs: // bubblewrap's own
			add(op.Path, Mount{Fresh: true, ReadOnly: sealed})
		case plan.SystemRO:
			add(op.Path, Mount{Tree: true, ReadOnly: true})
		case plan.Readable, plan.MountRO:
			add(op.Path, Mount{Tree: true, ReadOnly: !isDevice(op)})
		case plan.Writable, plan.ScratchPath, plan.MountRW, plan.Pin:
			add(op.Path, Mount{Tree: true})
		case plan.ScratchTmpfs:
			add(op.Path, Mount{Fresh: true})
		case plan.Proc:
			add(op.Path, Mount{Fresh: true, ReadOnly: true})
		case plan.Dev:
			add(op.Path, Mount{Fresh: true, ReadOnly: true})
			for _, name := range devices {
				add(op.Path+"/"+name, Mount{Optional: true})
			}
			add(op.Path+"/pts", Mount{Fresh: true, Optional: true})
			add(op.Path+"/shm", Mount{Fresh: true})
		case plan.MaskDir:
			add(op.Path, Mount{Fresh: true, ReadOnly: true})
		case plan.MaskFile:
			add(op.Path, Mount{ReadOnly: true})
		}
	}
	return out
}
