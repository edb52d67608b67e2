package policy

import (
	"slices"
	"strings"
	"unicode/utf8"

	"sandboxd/protocol"
)

// Normalise gives a copy of a policy in which doubled and trailing slashes are
// gone from roots, protected paths and a scratch path. Mounts are left alone:
// there such a spelling is refused. Empty lists become nil.
func Normalise(p protocol.Policy) protocol.Policy {
	p.WritableRoots = cleanAll(p.WritableRoots)
	p.ReadableRoots = cleanAll(p.ReadableRoots)
	p.Protected = cleanAll(p.Protected)
	p.Mounts = copied(p.Mounts)
	p.Network.Allow = copied(p.Network.Allow)
	p.EnvAllow = copied(p.EnvAllow)
	if p.Scratch != protocol.ScratchTmpfs {
		p.Scratch = clean(p.Scratch)
	}
	return p
}

// Writable lists what a policy itself lets its command write, as spelled: writable
// roots, read-write mounts, a scratch on the host.
func Writable(p protocol.Policy) []string {
	out := copied(p.WritableRoots)
	for _, m := range p.Mounts {
		if m.Access == protocol.ReadWrite {
			out = append(out, m.Path)
		}
	}
	if p.Scratch != protocol.ScratchTmpfs {
		out = append(out, p.Scratch)
	}
	return out
}

func copied[T any](s []T) []T { return append([]T(nil), s...) }

func cleanAll(paths []string) []string {
	out := copied(paths)
	for i, p := range out {
		out[i] = clean(p)
	}
	return out
}

// clean takes doubled and trailing slashes away, and nothing else.
func clean(path string) string {
	if !loose(path) {
		return path
	}
	var b strings.Builder
	b.Grow(len(path))
	for i := range len(path) {
		if path[i] != '/' || i == 0 || path[i-1] != '/' {
			b.WriteByte(path[i])
		}
	}
	out := b.String()
	if len(out) > 1 {
		out = strings.TrimSuffix(out, "/")
	}
	return out
}

// loose says whether a path has a doubled or trailing slash.
func loose(path string) bool {
	return strings.Contains(path, "//") || len(path) > 1 && strings.HasSuffix(path, "/")
}

// checkPath judges the spelling of one path by the rules that every list has.
func checkPath(key, path string) error {
	switch {
	case path == "":
		return fail(key, "found an empty path, expected an absolute one")
	case len(path) > MaxPath:
		return fail(key, "found a path of %d bytes, expected at most %d", len(path), MaxPath)
	case !utf8.ValidString(path):
		return fail(key, "found %s, expected UTF-8", quote(path))
	case strings.Contains(path, "\x00"):
		return fail(key, "found %s, expected no NUL", quote(path))
	case path[0] != '/':
		return fail(key, "found %s, expected an absolute path; begin it with /", quote(path))
	}
	if bad := dots(path); bad != "" {
		return fail(key, "found %s, expected no %q segment; write the path without it", quote(path), bad)
	}
	return nil
}

// dots gives the first "." or ".." segment of a path, or "".
func dots(path string) string {
	if !strings.Contains(path, "/.") {
		return ""
	}
	for name := range strings.SplitSeq(path, "/") {
		if name == "." || name == ".." {
			return name
		}
	}
	return ""
}

func checkPaths(p protocol.Policy) error {
	for _, l := range []struct {
		key   string
		paths []string
	}{
		{"writable_roots", p.WritableRoots},
		{"readable_roots", p.ReadableRoots},
		{"protected", p.Protected},
	} {
		for i, path := range l.paths {
			if err := checkPath(index(l.key, i), path); err != nil {
				return err
			}
		}
	}
	if i := slices.IndexFunc(p.Protected, func(s string) bool { return clean(s) == "/" }); i >= 0 {
		return fail(index("protected", i), `found "/", expected a path below it; to hide a place, do not grant it`)
	}
	return checkScratch(p.Scratch)
}

func checkScratch(scratch string) error {
	if scratch == protocol.ScratchTmpfs {
		return nil
	}
	if scratch == "" || scratch[0] != '/' {
		return fail("scratch", `found %s, expected "tmpfs" or an absolute path`, quote(scratch))
	}
	if err := checkPath("scratch", scratch); err != nil {
		return err
	}
	if clean(scratch) == "/" {
		return fail("scratch", `found "/", expected "tmpfs" or a path below it: no later rule could narrow it`)
	}
	return nil
}
