package bwrap

import (
	"fmt"
	"strconv"

	"sandboxd/internal/host"
	"sandboxd/internal/plan"
)

// operations renders the plan's list in its order, which is its precedence.
func (r *renderer) operations(ops []plan.Op) {
	for _, op := range ops {
		if isMount(op) {
			for dir := op.Path; dir != "/"; dir = host.Parent(dir) {
				r.late[host.Parent(dir)] = true
			}
		}
	}
	var remount []string // read-only as soon as what is mounted below is there
	for i, op := range ops {
		if op.Class == plan.Seal {
			remount = r.flush(remount)
		}
		r.parents(op)
		r.operation(op)
		r.seen[op.Path] = op.Class
		switch {
		case op.Class == plan.Dev:
			remount = append(remount, op.Path)
		case op.Class == plan.MaskDir && r.late[op.Path]:
			remount = append(remount, op.Path)
		case op.Class == plan.MaskDir:
			r.add("--remount-ro", op.Path)
		}
		if len(remount) == 1 && remount[0] == "/dev" && (i+1 == len(ops) || !isMount(ops[i+1]) || !host.Beneath(ops[i+1].Path, "/dev")) {
			remount = r.flush(remount)
		}
	}
	r.flush(remount)
}

func (r *renderer) flush(paths []string) []string {
	for i := len(paths) - 1; i >= 0; i-- {
		r.add("--remount-ro", paths[i])
	}
	return nil
}

func isMount(op plan.Op) bool { return op.Class == plan.MountRO || op.Class == plan.MountRW }

// operation renders one.
func (r *renderer) operation(op plan.Op) {
	switch op.Class {
	case plan.SystemRO:
		r.add("--ro-bind", op.Path, op.Path)
	case plan.Readable, plan.MountRO:
		r.bind(op, "ro-bind")
	case plan.Writable, plan.ScratchPath, plan.MountRW, plan.Pin:
		r.bind(op, "bind")
	case plan.ScratchTmpfs:
		r.tmpfs(op.Path, op.Perms, op.Size)
	case plan.LinkTo:
		r.add("--symlink", op.Target, op.Path)
	case plan.Proc:
		r.add("--proc", op.Path, "--remount-ro", op.Path)
	case plan.Dev:
		r.add("--dev", op.Path)
		r.tmpfs(op.Path+"/shm", 0o1777, op.Size)
	case plan.MaskDir:
		r.tmpfs(op.Path, op.Perms, 0)
	case plan.MaskFile:
		r.perms(op.Perms)
		r.add("--ro-bind-data", r.fd(Inherit{Kind: Data, Path: op.Path, Content: op.Content}), op.Path)
	case plan.Seal:
		r.add("--remount-ro", op.Path)
	}
}

func isDevice(op plan.Op) bool {
	return op.Node.Kind == host.CharDevice || op.Node.Kind == host.BlockDevice
}

// bind binds by descriptor where this bubblewrap can: a name could lead elsewhere
// by now. A device node keeps working only through --dev-bind, which takes a path;
// stage 2 compares its device number.
func (r *renderer) bind(op plan.Op, flag string) {
	if isDevice(op) {
		r.add("--dev-bind", op.Path, op.Path)
		return
	}
	if r.o.Flags[flag+"-fd"] {
		r.add("--"+flag+"-fd", r.fd(Inherit{Kind: Bind, Path: op.Path, ID: op.Node.ID}), op.Path)
		return
	}
	r.add("--"+flag, op.Path, op.Path)
}

// tmpfs mounts an empty one.
func (r *renderer) tmpfs(path string, perms uint32, size uint64) {
	if size != 0 && r.has("size", "mounts", "the private tmpfs has no size of its own") {
		r.add("--size", strconv.FormatUint(size, 10))
	}
	r.perms(perms)
	r.add("--tmpfs", path)
}

func (r *renderer) perms(perms uint32) {
	if r.has("perms", "mounts", "masks and the scratch have bubblewrap's default modes") {
		r.add("--perms", fmt.Sprintf("%04o", perms))
	}
}

// parents makes the directories above a mount point that lie in a tmpfs of the
// jail. bubblewrap would make them too, but with mode 0700.
func (r *renderer) parents(op plan.Op) {
	if op.Path == "/" || !r.o.Flags["perms"] {
		return
	}
	var dirs []string
	for dir := host.Parent(op.Path); ; dir = host.Parent(dir) {
		if r.made[dir] {
			break
		}
		if c, ok := r.seen[dir]; ok {
			if !ours(c) {
				return
			}
			break
		}
		dirs = append(dirs, dir)
	}
	for i := len(dirs) - 1; i >= 0; i-- {
		from := len(r.args)
		r.add("--perms", "0755", "--dir", dirs[i])
		r.dirs = append(r.dirs, [2]int{from, len(r.args)})
		r.made[dirs[i]] = true
	}
}

// ours says whether a class is a tmpfs in which directories can be made.
func ours(c plan.Class) bool {
	switch c {
	case plan.RootTmpfs, plan.ScratchTmpfs, plan.Dev, plan.MaskDir:
		return true
	}
	return false
}
