package selftest

import (
	"strings"

	"sandboxd/protocol"
)

func fileProbes() []Probe {
	return []Probe{
		{Name: "write-outside", Means: "a write outside the writable roots", Layers: byView, run: writeOutside().probe},
		{Name: "read-unnamed", Means: "a path that no part of the policy names", Layers: byView, run: readUnnamed().probe},
		{Name: "protected-file", Means: "reads and writes of a protected file", Layers: byMask, run: protectedFile().probe},
		{Name: "protected-dir", Means: "reads and writes in a protected directory", Layers: byMask, run: protectedDir().probe},
		{Name: "protected-ancestor", Means: "a protected path made again after its ancestor was renamed", Layers: byMask, run: protectedAncestor().probe},
		{Name: "protected-missing", Means: "a missing protected path made, or left behind", Layers: byMask, run: protectedMissing().probe},
		{Name: "state-dir", Means: "the bytes of secrets in a readable state directory", Layers: byMask, run: stateDir().probe},
	}
}

func writeOutside() denial {
	return denial{
		role: "file",
		must: []string{"append", "create", "truncate", "replace", "rename"}, allowed: []string{"read"},
		args: func(_ *lane, s *site) []string {
			return []string{"read=" + s.path("out/open"), "append=" + s.path("out/file"), "create=" + s.path("out/new"),
				"truncate=" + s.path("out/file"), "replace=" + s.path("out/file"), "rename=" + s.path("out/dir")}
		},
		setup:   func(_ *lane, s *site) error { return s.file("out/open", "open") },
		policy:  func(s *site) protocol.Policy { return withRO(s, "out") },
		granted: func(s *site) protocol.Policy { return withRW(s, "out") },
		intact:  []string{"out"},
		extra: func(_ *lane, _ *site, o outcome) string {
			return byMount(o, "read-only file system", "append", "create", "rename")
		},
	}
}

// byMount tells the layers apart: the kernel looks at the mounts before it asks
// Landlock, so that where the report claims the view a write must fail with EROFS, and
// a path that is not in it with ENOENT. Any other error means that a second layer
// stood in for one that is not there.
func byMount(o outcome, want string, keys ...string) string {
	if _, absent := lacking([]string{protocol.TagMounts}, o.exit.Enforcement); absent {
		return ""
	}
	for _, key := range keys {
		if detail := o.answers[key].detail; !strings.Contains(detail, want) {
			return key + " was denied, but not by the mounts that the report claims: " + detail
		}
	}
	return ""
}

func readUnnamed() denial {
	return denial{
		role: "file", must: []string{"read", "list"}, shown: true,
		args: func(_ *lane, s *site) []string {
			return []string{"read=" + s.path("out/file"), "list=" + s.path("out")}
		},
		granted: func(s *site) protocol.Policy { return withRO(s, "out") },
		intact:  []string{"out"},
		extra:   func(_ *lane, _ *site, o outcome) string { return byMount(o, "no such file", "read", "list") },
	}
}

func protectedFile() denial {
	const file = "work/.env"
	return denial{
		role: "file", must: []string{"read", "append", "write", "truncate", "hardlink", "replace", "rename"}, shown: true,
		setup: func(_ *lane, s *site) error { return s.file(file, s.secret) },
		args: func(_ *lane, s *site) []string {
			var args []string
			for _, action := range []string{"read", "append", "write", "truncate", "hardlink", "replace", "rename"} {
				args = append(args, action+"="+s.path(file))
			}
			return args
		},
		policy: func(s *site) protocol.Policy { return protecting(s, file) }, granted: strict,
		intact: []string{file},
	}
}

func protectedDir() denial {
	return denial{
		role: "file", must: []string{"read", "append", "create", "remove", "rename"}, shown: true,
		setup: func(_ *lane, s *site) error { return s.file("work/keys/id", s.secret) },
		args: func(_ *lane, s *site) []string {
			return []string{"read=" + s.path("work/keys/id"), "append=" + s.path("work/keys/id"), "create=" + s.path("work/keys/new"),
				"remove=" + s.path("work/keys/id"), "rename=" + s.path("work/keys")}
		},
		policy: func(s *site) protocol.Policy { return protecting(s, "work/keys") }, granted: strict,
		intact: []string{"work/keys"},
	}
}

func protectedAncestor() denial {
	return denial{
		role: "replant", must: []string{"rename", "replant"},
		setup: func(_ *lane, s *site) error { return s.file("work/repo/git/hooks/sample", "sample") },
		args: func(_ *lane, s *site) []string {
			return []string{s.path("work/repo"), s.path("work/repo/git/hooks/planted"), "planted"}
		},
		policy: func(s *site) protocol.Policy { return protecting(s, "work/repo/git/hooks") }, granted: strict,
		intact: []string{"work/repo"},
	}
}

func protectedMissing() denial {
	return denial{
		role: "file", must: []string{"make"},
		args: func(_ *lane, s *site) []string { return []string{"make=" + s.path("work/.tool/config/tasks")} },
		policy: func(s *site) protocol.Policy {
			return protecting(s, "work/.tool/config/tasks")
		},
		granted: strict,
		intact:  []string{"work/.tool"},
	}
}

// stateDir is the layout of a daemon's own secrets: outside every writable root,
// readable as a whole, the secrets in it protected. What counts is whether the bytes
// come out, not an errno.
func stateDir() denial {
	const public = "public-part"
	return denial{
		role: "search", allowed: []string{"search"}, shown: true,
		setup: func(_ *lane, s *site) error {
			for rel, text := range map[string]string{"state/public": public, "state/token": s.secret, "state/keys/id": s.secret} {
				if err := s.file(rel, text); err != nil {
					return err
				}
			}
			return nil
		},
		args: func(_ *lane, s *site) []string {
			return []string{s.path("state"), s.path("state/token"), s.path("state/keys/id"),
				"/proc/self/root" + s.path("state/token"), "/proc/1/root" + s.path("state/keys/id")}
		},
		policy: func(s *site) protocol.Policy {
			p := withRO(s, "state")
			p.Protected = []string{s.path("state/token"), s.path("state/keys")}
			return p
		},
		granted: func(s *site) protocol.Policy { return withRO(s, "state") },
		intact:  []string{"state"},
		extra: func(_ *lane, _ *site, o outcome) string {
			if !o.shows(public) {
				return "the readable part of the directory was not found: " + strings.TrimSpace(o.answers["search"].detail)
			}
			return ""
		},
	}
}
