package plan

import "sandboxd/internal/host"

// looked are kernel file systems by which programs learn about the machine: these stay,
// read-only. The others show processes, take settings or hold what the host shares.
var looked = map[string]bool{"sysfs": true, "cgroup": true, "cgroup2": true}

// origin of what is done about a mount of the kernel's own inside a grant.
func kernelOrigin(k host.KernelMount) Origin {
	return Origin{List: listKernel, Index: -1, Path: k.Path, Why: kernelWhy(k)}
}

func kernelWhy(k host.KernelMount) string {
	if k.FSType == "proc" {
		return "the host's processes and kernel settings (" + k.FSType + ")"
	}
	return "the host's own kernel objects and settings (" + k.FSType + ")"
}

// grantKernel narrows what the host has mounted of the kernel's inside a grant, as under
// "/" or in the tree of a chroot: to uid 0 it is the host's settings, core_pattern and
// uevent_helper among them, whatever capabilities are gone. A policy that names such a
// place has it.
func (b *builder) grantKernel() *Refusal {
	for _, k := range b.f.Kernel {
		n := b.f.Layout[k.Path]
		_, closed := b.closedDir(k.Path)
		if looked[k.FSType] && exists(n.Kind) && !closed && b.region(k.Path).Class.access() == accessWrite {
			b.put(Op{Path: k.Path, Class: Readable, Node: n, Origin: kernelOrigin(k)})
		}
	}
	return nil
}

// coverKernel does the same inside explicit mounts, which come after the masks.
func (b *builder) coverKernel() *Refusal {
	for _, k := range b.f.Kernel {
		around := b.shown(k.Path)
		_, explicit := b.explicit[around.Path]
		n := b.f.Layout[k.Path]
		if !explicit || around.Path == k.Path || !exists(n.Kind) {
			continue
		}
		op := Op{Path: k.Path, Class: MountRO, Node: n, Origin: kernelOrigin(k)}
		switch {
		case looked[k.FSType] && around.Class == MountRW:
		case looked[k.FSType], k.FSType != "proc" && around.Class != MountRW:
			continue
		case n.Kind == host.Dir:
			op.Class, op.Perms = MaskDir, 0o444
		default:
			op.Class, op.Perms = MaskFile, 0
		}
		b.explicit[k.Path] = op
	}
	return nil
}

// hideKernel masks the rest of it: where it could be written, and processes wherever
// they show.
func (b *builder) hideKernel() {
	for _, k := range b.f.Kernel {
		a := b.region(k.Path).Class.access()
		if b.maskShut(kernelOrigin(k), k.Path) {
			continue
		}
		if a == accessWrite && !looked[k.FSType] || a == accessRead && k.FSType == "proc" {
			b.maskPlace(listKernel, Place{k.Path, kernelWhy(k)})
		}
	}
}

// hideProc masks a file of the jail's own /proc that the kernel shows to uid 0 alone.
// Not where a command may make user namespaces: a /proc of theirs could then not be
// mounted, and would show the same (mount_namespaces(7)).
func (b *builder) hideProc(p Place) {
	res := b.f.Layout.Resolve(p.Path)
	if b.f.OS != "linux" || b.f.AllowNestedUserns || res.Err != nil || res.Node.Kind != host.File {
		return
	}
	b.setMask(Op{Path: p.Path, Class: MaskFile, Node: res.Node, Origin: Origin{List: listSecret, Index: -1, Path: p.Path, Why: p.Why}})
}

// hidePrivate masks, for a root caller, what below /etc the host's own modes keep from
// everybody else.
func (b *builder) hidePrivate() {
	for _, path := range b.f.Private {
		b.maskPlace(listSecret, Place{path, privateWhy})
	}
	if b.f.PrivateMore {
		b.skip(listMounts, "more than is masked below /etc is readable by root alone")
	}
}

const privateWhy = "a file mode keeps it from everybody but root"
