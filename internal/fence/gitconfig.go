package fence

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"sandboxd/internal/fence/repos"
)

// setting is one entry of git's configuration.
type setting struct {
	key, value string // the key as git prints it: lowercase but for a subsection
	dir        string // of the file, for a relative include
}

// git is the program's path, "" for none.
type git string

// config reads one configuration file with git's own parser, includes not
// followed. Reading a named file runs nothing, and "/" as directory keeps any
// repository out of it. Without git, or for an unreadable file, it is empty: then
// git reads nothing there either.
func (g git) config(file string) []setting {
	real, err := realPath(file)
	if err != nil {
		return nil
	}
	if info, err := os.Lstat(real); err != nil || !info.Mode().IsRegular() {
		return nil
	}
	var list []setting
	for _, entry := range g.list(nil, "--file", real, "--no-includes") {
		if key, value, ok := strings.Cut(entry, "\n"); ok {
			list = append(list, setting{key, value, filepath.Dir(file)})
		}
	}
	return list
}

// list is `git config --list` with more environment and flags.
func (g git) list(env []string, flags ...string) []string {
	if g == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, string(g), append(append([]string{"config"}, flags...), "-z", "--list")...)
	cmd.Dir, cmd.Env = "/", append(os.Environ(), env...)
	out, err := firstOutput(cmd, maxListed)
	if err != nil {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
}

// maxListed bounds what is taken of a list, in bytes.
const maxListed = 16 << 20

// firstOutput is a command's output up to a size in bytes. One that says more is ended.
func firstOutput(cmd *exec.Cmd, most int64) ([]byte, error) {
	pipe, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, err
	}
	out, err := io.ReadAll(io.LimitReader(pipe, most))
	if int64(len(out)) == most {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return out, err
	}
	return out, errors.Join(err, cmd.Wait())
}

// last is the value of a key that git would take, "" for none.
func last(list []setting, key string) (value string) {
	for _, s := range list {
		if s.key == key {
			value = s.value
		}
	}
	return value
}

// userFiles lists the configuration files that are the user's and the system's own,
// as git finds them for this environment.
func (g git) userFiles(env Environ) (files []string) {
	var vars []string
	for _, name := range []string{"HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM"} {
		if value, ok := env(name); ok {
			vars = append(vars, name+"="+value)
		}
	}
	seen := map[string]bool{}
	for _, entry := range g.list(vars, "--show-origin", "--name-only") {
		if file, ok := strings.CutPrefix(entry, "file:"); ok && filepath.IsAbs(file) && !seen[file] {
			seen[file] = true
			files = append(files, file)
		}
	}
	return files
}

// maxIncludes bounds the configuration files that are followed.
const maxIncludes = 32

// settings reads configuration files and what they include, under any condition.
// Files that name nothing git would read or run are passed over.
func (g git) settings(files []string, home string) (list []setting) {
	todo, seen := append([]string(nil), files...), map[string]bool{}
	for len(todo) > 0 && len(seen) < maxIncludes {
		at := todo[0]
		todo = todo[1:]
		if seen[at] || !telling(at) {
			continue
		}
		seen[at] = true
		for _, s := range g.config(at) {
			list = append(list, s)
			if included(s.key) {
				todo = append(todo, expand(s.value, s.dir, home))
			}
		}
	}
	return list
}

// telling says whether a file's text holds a key that matters: most have none, and
// git need not be started for them. A key is written as it is, but for its case.
func telling(file string) bool {
	real, err := realPath(file)
	if err != nil {
		return false
	}
	text, err := repos.ReadSmall(real, 1<<20)
	if err != nil {
		return !os.IsNotExist(err)
	}
	text = bytes.ToLower(text)
	for _, word := range tellingWords() {
		if bytes.Contains(text, []byte(word)) {
			return true
		}
	}
	return false
}

func included(key string) bool {
	return key == "include.path" || strings.HasPrefix(key, "includeif.") && strings.HasSuffix(key, ".path")
}

func expand(path, dir, home string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		return filepath.Join(home, rest)
	}
	return repos.Joined(dir, path)
}
