package roots

import (
	"sort"

	"sandboxd/internal/host"
)

// aliases finds the other names that mounts of the host give to each path, or to
// parts of what lies beneath it: a mask or a read-only bind covers one name only.
// What two file systems share below the mount table (the layers of an overlay, a
// file system exported to this same machine) is not found.
func (s *survey) aliases(paths []string) (host.Aliases, error) {
	out := host.Aliases{}
	byDev := map[string][]Mount{}
	for _, m := range s.places.mounts {
		byDev[m.Dev] = append(byDev[m.Dev], m)
	}
	for _, path := range paths {
		at, whole, ok := s.treeBeneath(path)
		if !ok || at == "/" {
			continue
		}
		found := map[string]bool{}
		var failed error
		look := func(t tree) {
			for name, t := range names(t, byDev) {
				if failed != nil || found[name] || host.Beneath(name, at) {
					continue
				}
				var is bool
				if is, failed = s.shows(name, t); is {
					found[name] = true
					out[path] = append(out[path], name)
				}
			}
		}
		look(whole)
		for _, m := range s.places.mounts {
			// What is mounted beneath is part of what the path names.
			if m.Point == at || !host.Beneath(m.Point, at) || kernelsOwn(m.FSType) {
				continue
			}
			look(tree{m.Dev, m.Root})
		}
		if failed != nil {
			return nil, failed // else a name would silently stay open
		}
		sort.Strings(out[path])
	}
	return out, nil
}

// kernelsOwn are file systems that every container has mounted again, and that the
// jail has fresh or not at all.
func kernelsOwn(fsType string) bool {
	switch fsType {
	case "proc", "sysfs", "devtmpfs", "devpts", "mqueue", "cgroup", "cgroup2", "securityfs", "debugfs",
		"tracefs", "bpf", "pstore", "configfs", "binfmt_misc", "hugetlbfs", "selinuxfs", "smackfs", "nfsd",
		"rpc_pipefs", "resctrl", "xenfs", "efivarfs", "fusectl", "autofs", "nsfs":
		return true
	}
	return false
}

// treeBeneath places a path, which need not exist, within its file system. Below
// something that is no directory one component stands for all the rest.
func (s *survey) treeBeneath(path string) (at string, t tree, ok bool) {
	res := s.r.layout.Resolve(path)
	at = res.Path
	if res.Err != nil {
		at = host.Join(at, base(path))
	}
	t, ok = s.r.treeAt(at)
	return at, t, ok
}

// names gives every path at which a mount shows t or a part of it, and what of it.
func names(t tree, byDev map[string][]Mount) map[string]tree {
	out := map[string]tree{}
	for _, m := range byDev[t.dev] {
		switch {
		case host.Beneath(t.path, m.Root):
			out[rebase(t.path, m.Root, m.Point)] = t
		case host.Beneath(m.Root, t.path):
			out[m.Point] = tree{m.Dev, m.Root}
		}
	}
	return out
}

// shows says whether a name leads to t now, and not to what another mount put over
// it. What exists of it must be known to the layout, so it is walked. Behind what cannot
// be looked at, or is closed, which its owner opens again, the mount table alone decides.
func (s *survey) shows(name string, t tree) (bool, error) {
	for _, own := range []string{"/proc", "/dev"} {
		if host.Beneath(name, own) {
			return false, nil // the jail has its own
		}
	}
	if _, err := s.walk(name); short(err) {
		return false, err
	}
	res := s.r.layout.Resolve(name)
	if len(res.Links) > 0 { // a mount's place has none, so something lies over it
		return false, nil
	}
	if res.Node.Kind == host.Denied || res.Node.Kind == host.Unknown {
		return true, nil
	}
	at, ok := s.r.treeAt(name)
	return !ok || at == t, nil
}
