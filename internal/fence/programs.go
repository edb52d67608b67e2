package fence

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sandboxd/internal/fence/repos"
)

// programKeys are the keys of git's configuration whose value is run: by section and
// last part, whatever is between them. See git-config(1).
func programKeys() map[string][]string {
	return map[string][]string{
		"alias":       {"*"},
		"browser":     {"cmd", "path"},
		"core":        {"alternaterefscommand", "askpass", "editor", "fsmonitor", "gitproxy", "pager", "sshcommand"},
		"credential":  {"helper"},
		"diff":        {"command", "external", "textconv"},
		"difftool":    {"cmd", "path"},
		"filter":      {"clean", "process", "smudge"},
		"gpg":         {"defaultkeycommand", "program"},
		"guitool":     {"cmd"},
		"hook":        {"command"},
		"imap":        {"tunnel"},
		"interactive": {"difffilter"},
		"man":         {"cmd", "path"},
		"merge":       {"driver"},
		"mergetool":   {"cmd", "path"},
		"pager":       {"*"},
		"remote":      {"receivepack", "uploadpack"},
		"sendemail":   {"cccmd", "headercmd", "sendmailcmd", "smtpserver", "tocmd"},
		"sequence":    {"editor"},
		"submodule":   {"update"},
		"tar":         {"command"},
		"trailer":     {"cmd", "command"},
		"uploadpack":  {"packobjectshook"},
		"web":         {"browser"},
	}
}

// tellingWords are what a file has to hold if it names a place that matters. A
// section's name may be written "[Core]" or "[diff \"x\"]", never in parts.
func tellingWords() []string {
	words := []string{"include", "hookspath", "templatedir"}
	for section, keys := range programKeys() {
		for _, key := range keys {
			if key == "*" {
				key = section
			}
			words = append(words, key)
		}
	}
	return words
}

// runs says whether git runs what a key's value names.
func runs(key string) bool {
	section, rest, _ := strings.Cut(key, ".")
	name := rest[strings.LastIndexByte(rest, '.')+1:]
	keys := programKeys()[section]
	return slices.Contains(keys, name) || slices.Contains(keys, "*")
}

// named lists the places that a setting makes git read as configuration or run, in a
// repository whose work tree is top; later are programs that are not there yet, as one
// of another branch: what keeps one away would keep git from checking that out.
func named(s setting, top, home string) (paths, later []string) {
	switch {
	case s.key == "core.hookspath":
		dir := expand(s.value, top, home)
		paths = append(paths, dir)
		if filepath.Base(dir) == "_" { // husky: what is in it runs the files beside it
			paths = append(paths, filepath.Dir(dir))
		}
	case included(s.key):
		paths = append(paths, expand(s.value, s.dir, home))
	case s.key == "init.templatedir":
		paths = append(paths, expand(s.value, top, home))
	case runs(s.key):
		for i, word := range words(s.value) {
			path, first := expand(word, top, home), i == 0 && strings.Contains(word, "/")
			if program(path, first) {
				paths = append(paths, path)
			} else if (first || slices.Contains(scripts, filepath.Ext(path))) && !exists(path) {
				later = append(later, path)
			}
		}
	}
	return paths, later
}

// words splits a shell's command roughly: what is left over names no file.
func words(command string) []string {
	return strings.FieldsFunc(command, func(c rune) bool { return strings.ContainsRune(" \t\n\"'`!;&|()<>$={},", c) })
}

// program says whether a file is one that is run: as the first word of a command, or
// because it looks like one. Data that a command is given may change.
func program(path string, first bool) bool {
	info, err := os.Stat(path)
	if os.IsPermission(err) { // what is there, the owner of its directory may yet reach
		return true
	}
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	return first || info.Mode()&0o111 != 0 || slices.Contains(scripts, filepath.Ext(path))
}

// scripts are the names that interpreters' files have.
var scripts = []string{".awk", ".bash", ".cjs", ".js", ".lua", ".mjs", ".php", ".pl", ".ps1", ".py", ".rb", ".sed", ".sh", ".ts", ".zsh"}

// links lists where the symbolic links in a directory of hooks lead: the hook that
// runs is there. In one that cannot be listed, or is huge, they are found as git finds them.
// The error is of one in which none can be found.
func links(dir string) (paths []string, err error) {
	if err := searchable(dir); err != nil {
		return nil, err
	}
	if !isDir(dir) { // a fifo would keep who opens it
		return nil, nil
	}
	names := hookNames()
	if entries, err := some(dir, maxHooks); err == nil {
		names = nil
		for _, e := range entries {
			if e.Type()&os.ModeSymlink != 0 {
				names = append(names, e.Name())
			}
		}
	}
	for _, name := range names {
		if target, err := os.Readlink(filepath.Join(dir, name)); err == nil {
			paths = append(paths, expand(target, dir, ""))
		}
	}
	return paths, nil
}

// maxHooks bounds the entries of a directory of hooks that are taken one by one.
const maxHooks = 1024

// some lists a directory that has no more entries than that.
func some(dir string, most int) ([]os.DirEntry, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	entries, err := f.ReadDir(max(most, 0) + 1)
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		return nil, err
	case len(entries) > most:
		return nil, repos.ErrMore
	}
	slices.SortFunc(entries, func(a, b os.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, nil
}

// searchable gives what keeps this user from the names in a directory that is there.
func searchable(dir string) error {
	if _, err := os.Stat(dir + "/."); err != nil && !repos.Absent(err) {
		return err
	}
	return nil
}

// hookNames are those of githooks(5).
func hookNames() []string {
	return strings.Fields(`applypatch-msg commit-msg fsmonitor-watchman p4-changelist p4-post-changelist
	p4-pre-submit p4-prepare-changelist post-applypatch post-checkout post-commit post-index-change post-merge
	post-receive post-rewrite post-update pre-applypatch pre-auto-gc pre-commit pre-merge-commit pre-push pre-rebase
	pre-receive prepare-commit-msg proc-receive push-to-checkout reference-transaction sendemail-validate update`)
}
