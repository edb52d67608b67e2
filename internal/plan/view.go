package plan

import "sandboxd/internal/host"

// Effect is what a command can do at a path.
type Effect uint8

// Effects.
const (
	None      Effect = iota // outside the view
	ReadOnly                // the host's inode, for reading
	ReadWrite               // the host's inode, for writing
	Masked                  // something empty in its place
	Private                 // the jail's own: scratch, /proc, /dev
)

// String is the effect's name in explain.
func (e Effect) String() string {
	return [...]string{"none", "read-only", "read-write", "masked", "private"}[e]
}

// View is the effective view of one path and the operation that decides it.
type View struct {
	Effect Effect
	Op     Op
	Index  int // of Op in the plan, -1 where there is none
}

// At replays the plan for one canonical path: what the last operation covering it
// gives. Links that the plan reproduces are followed.
func (p Plan) At(path string) View {
	for range host.MaxHops {
		v, next := p.replay(path)
		if next == "" {
			return v
		}
		path = next
	}
	return View{Index: -1}
}

// Access says what a command can do at a canonical path of the jail.
func (p Plan) Access(path string) (readable, writable bool) {
	v := p.At(path)
	switch v.Effect {
	case ReadWrite:
		return true, true
	case Private:
		return true, v.Op.Class == ScratchTmpfs || host.Beneath(path, "/dev/shm")
	}
	return v.Effect == ReadOnly, false
}

// Writable lists the directories that are there for the command to write, and says
// whether the scratch among them is a tmpfs of its own.
func (p Plan) Writable() (dirs []string, tmpfs bool) {
	for _, op := range p.Ops {
		switch op.Class {
		case Writable, MountRW, ScratchPath, ScratchTmpfs:
			dirs, tmpfs = append(dirs, op.Path), tmpfs || op.Class == ScratchTmpfs
		}
	}
	return dirs, tmpfs
}

// replay looks at every operation once. next is where a reproduced link leads.
func (p Plan) replay(path string) (v View, next string) {
	v.Index = -1
	for i, op := range p.Ops {
		if op.Class == Seal || !host.Beneath(path, op.Path) {
			continue
		}
		v = View{op.Class.effect(), op, i}
	}
	if v.Op.Class == LinkTo {
		return v, follow(v.Op, path)
	}
	return sealed(p, v), ""
}

// sealed applies the seal: a remount that is not recursive, so it reaches only
// what the root's own mount gives.
func sealed(p Plan, v View) View {
	last := len(p.Ops) - 1
	if last < 0 || p.Ops[last].Class != Seal || v.Index < 0 || v.Op.Path != "/" {
		return v
	}
	if v.Effect == ReadWrite {
		return View{ReadOnly, p.Ops[last], last}
	}
	return v
}

// follow puts a link's text in place of the link at the front of path.
func follow(link Op, path string) string {
	rest := path[len(link.Path):]
	return host.Clean(host.Parent(link.Path), link.Target) + rest
}

// effect is what a class gives at its region.
func (c Class) effect() Effect {
	switch c {
	case SystemRO, Readable, MountRO:
		return ReadOnly
	case ScratchPath, Writable, MountRW, Pin:
		return ReadWrite
	case ScratchTmpfs, Proc, Dev:
		return Private
	case MaskDir, MaskFile:
		return Masked
	}
	return None
}
