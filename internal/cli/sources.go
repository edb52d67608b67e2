package cli

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"sandboxd/internal/fence"
	"sandboxd/protocol"
)

// sources says who put an entry into the policy.
type sources map[entryKey]source

type entryKey struct {
	list  string
	index int
}

// source is one of: a flag, a guard, a line of a policy file, the preset.
type source struct {
	flag  string   // "--ro"
	guard string   // why the path is guarded
	file  bool     // it stands in the policy file,
	at    entryKey // there
	text  string   // for a person
}

func fileSource(path string, line int, key entryKey) source {
	src := source{file: true, at: key, text: path}
	if line > 0 {
		src.text += ":" + strconv.Itoa(line)
	}
	return src
}

// nameSources says of each entry of a preset why it is there.
func (t *task) nameSources(r fence.Result) {
	why := map[string]string{}
	for _, g := range r.Guards {
		why[g.Path] = g.Why
	}
	for list, n := range lists(r.Policy) {
		for i := range n {
			path := entry(r.Policy, list, i)
			src := source{text: "the preset " + t.o.preset}
			switch {
			case why[path] != "" && (list == "mounts" || list == "protected"):
				src = source{guard: why[path], text: "guard: " + why[path]}
			case list == "writable_roots" && path == t.workspace:
				src.text = "the workspace"
			case list == "readable_roots" && t.o.preset == presetWorkspace:
				src.text = "the preset: a tool's cache, or its programs"
			}
			t.sources[entryKey{list, i}] = src
		}
	}
}

// attribute adds who put an entry into the policy, where that is no preset.
func (t *task) attribute(err error, entry string) error {
	entry, _, _ = strings.Cut(entry, ".")
	if text := t.sources.from(entry); text != "" {
		return fmt.Errorf("%w (%s is from %s)", err, entry, text)
	}
	return err
}

// from names the flag or the line that made an entry, "" where a preset did.
func (s sources) from(entry string) string {
	if src := s[keyOf(entry)]; src.flag != "" || src.file {
		return src.text
	}
	return ""
}

// lists gives the policy's lists of paths with their lengths.
func lists(p protocol.Policy) map[string]int {
	return map[string]int{"writable_roots": len(p.WritableRoots), "readable_roots": len(p.ReadableRoots), "protected": len(p.Protected), "mounts": len(p.Mounts)}
}

// entry gives one path of a list.
func entry(p protocol.Policy, list string, i int) string {
	switch list {
	case "writable_roots":
		return p.WritableRoots[i]
	case "readable_roots":
		return p.ReadableRoots[i]
	case "protected":
		return p.Protected[i]
	}
	return filepath.Clean(p.Mounts[i].Path)
}
