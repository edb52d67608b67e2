package plan

import (
	"slices"

	"sandboxd/internal/host"
	"sandboxd/protocol"
)

// Paths is the survey's shopping list: every path, as spelled, whose layout
// Build needs for this policy. Sorted, each once. The layout must hold every
// component that a walk of each of them meets, links followed.
func Paths(p protocol.Policy, f host.Facts) []string {
	out := []string{"/", tmpDir(f), "/proc", "/dev"}
	out = append(out, p.WritableRoots...)
	out = append(out, p.ReadableRoots...)
	out = append(out, p.Protected...)
	for _, m := range p.Mounts {
		out = append(out, m.Path)
	}
	if p.Scratch != protocol.ScratchTmpfs {
		out = append(out, p.Scratch)
	}
	for _, d := range Base(f) {
		out = append(out, d.Path)
	}
	for _, d := range autoDirs(f, true) {
		out = append(out, d.Path)
	}
	for _, s := range places(ServicePlaces, f) {
		out = append(out, s.Path)
	}
	if f.UID == 0 {
		for _, s := range SecretPlaces {
			out = append(out, s.Path)
		}
	}
	for _, s := range []string{f.Home, f.SSHAuth, f.Cwd, f.ScratchDir} {
		if len(s) > 0 && s[0] == '/' {
			out = append(out, s)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Sockets are paths of the helper's environment, to be looked at where they can be.
func Sockets(f host.Facts) (paths []string) {
	for _, s := range f.Services {
		paths = append(paths, s.Path)
	}
	return paths
}

// Narrow is what must be as narrow under any other name that mounts of the host
// give it (Facts.Aliases), as spelled: protected paths, and what is read-only.
func Narrow(p protocol.Policy) []string {
	out := slices.Clone(p.Protected)
	out = append(out, p.ReadableRoots...)
	for _, m := range p.Mounts {
		if m.Access == protocol.ReadOnly {
			out = append(out, m.Path)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// places expands a table for one caller.
func places(table []Place, f host.Facts) []Place {
	out := make([]Place, len(table))
	for i, s := range table {
		out[i] = Place{s.expand(f), s.Why}
	}
	return out
}

// tmpDir is where a tmpfs scratch goes, as spelled.
func tmpDir(f host.Facts) string {
	if f.OS == "darwin" && f.ScratchDir != "" {
		return f.ScratchDir
	}
	if f.OS == "darwin" {
		return "/private/tmp/sandboxd-scratch"
	}
	return "/tmp"
}
