package fence

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
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
// repository out of it. Without git, or for a file that it does not accept, it is
// empty: then git reads nothing there either.
func (g git) config(file string) (list []setting, err error) {
	real, err := realPath(file)
	if err != nil {
		return nil, nil
	}
	if info, err := os.Lstat(real); err != nil || !info.Mode().IsRegular() {
		return nil, nil
	}
	entries, err := g.list(alone, "--file", real, "--no-includes")
	for _, entry := range entries {
		if key, value, ok := strings.Cut(entry, "\n"); ok {
			list = append(list, setting{key, value, filepath.Dir(file)})
		}
	}
	if errors.As(err, new(*exec.ExitError)) {
		err = nil
	}
	return list, err
}

// alone keeps git from reading the user's own configuration first, which it dies on where
// that includes what cannot be read.
var alone = []string{"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_SYSTEM=" + os.DevNull, "GIT_CONFIG_GLOBAL=" + os.DevNull, "HOME=" + os.DevNull, "XDG_CONFIG_HOME=" + os.DevNull}

// listBound is how long git may take for one list.
const listBound = 5 * time.Second

// list is `git config --list` with more environment and flags.
func (g git) list(env []string, flags ...string) ([]string, error) {
	if g == "" {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), listBound)
	defer cancel()
	cmd := exec.CommandContext(ctx, string(g), append(append([]string{"config"}, flags...), "-z", "--list")...)
	cmd.Dir, cmd.Env = "/", append(os.Environ(), env...)
	out, err := firstOutput(cmd, maxListed)
	if ctx.Err() != nil {
		return nil, fmt.Errorf("git did not read it within %v", listBound)
	}
	if err != nil {
		return nil, err
	}
	return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00"), nil
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
// as git finds them for this environment. Where it reads none to the end, as behind a
// directory that is closed now, they are those with which it begins.
func (g git) userFiles(env Environ) (files []string) {
	var vars []string
	for _, name := range []string{"HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM"} {
		if value, ok := env(name); ok {
			vars = append(vars, name+"="+value)
		}
	}
	entries, err := g.list(vars, "--show-origin", "--name-only")
	if err != nil {
		return firstFiles(env)
	}
	seen := map[string]bool{}
	for _, entry := range entries {
		if file, ok := strings.CutPrefix(entry, "file:"); ok && filepath.IsAbs(file) && !seen[file] {
			seen[file] = true
			files = append(files, file)
		}
	}
	return files
}

// firstFiles are the files that git-config(1) names, under FILES.
func firstFiles(env Environ) (files []string) {
	if _, without := env("GIT_CONFIG_NOSYSTEM"); !without {
		file, ok := env("GIT_CONFIG_SYSTEM")
		if !ok {
			file = "/etc/gitconfig"
		}
		files = append(files, file)
	}
	if file, ok := env("GIT_CONFIG_GLOBAL"); ok {
		files = append(files, file)
	} else {
		home, _ := env("HOME")
		dir, ok := env("XDG_CONFIG_HOME")
		if !ok || dir == "" {
			dir = filepath.Join(home, ".config")
		}
		files = append(files, filepath.Join(dir, "git", "config"), filepath.Join(home, ".gitconfig"))
	}
	return slices.DeleteFunc(files, func(file string) bool { return !filepath.IsAbs(file) })
}

// unread is a file or directory that is there, or may be, and could not be read.
type unread struct {
	path string
	err  error
}

// settings reads configuration files and what they include, under any condition.
// Files that name nothing git would read or run are passed over.
func (g git) settings(files []string, home string, most *bounds) (list []setting, failed []unread) {
	todo, seen := append([]string(nil), files...), map[string]bool{}
	for len(todo) > 0 {
		at := todo[0]
		todo = todo[1:]
		if seen[at] {
			continue
		}
		seen[at] = true
		tells, err := telling(at, most)
		if err != nil {
			failed = append(failed, unread{at, err})
		}
		if err != nil || !tells {
			continue
		}
		found, err := g.config(at)
		if err != nil {
			failed = append(failed, unread{at, err})
		}
		for _, s := range found {
			list = append(list, s)
			if included(s.key) {
				todo = append(todo, expand(s.value, s.dir, home))
			}
		}
	}
	return list, failed
}

// bounds are of all that is read for one guard: a command can make repositories whose
// configuration has the same file, or the same directory, read any number of times.
type bounds struct {
	text  int // bytes of configuration files
	tells int // of those that name something
	files int // those: git is started for each
	hooks int // directories

	modules int // entries of directories of submodules
}

func newBounds() *bounds {
	return &bounds{text: 64 << 20, tells: 8 << 20, files: 1024, hooks: 256, modules: 1 << 17}
}

// maxConfig is the size of a configuration file that is read, in bytes.
const maxConfig = 8 << 20

// telling says whether a file's text holds a key that matters: most have none, and
// git need not be started for them. A key is written as it is, but for its case. The
// error is of one that may be there.
func telling(file string, most *bounds) (bool, error) {
	real, err := realPath(file)
	var text []byte
	if err == nil {
		var info os.FileInfo
		if info, err = os.Lstat(real); err == nil {
			switch {
			case !info.Mode().IsRegular():
				return false, nil // git reads nothing there, or would wait for ever
			case info.Size() > maxConfig, info.Size() > int64(most.text):
				return false, repos.ErrMore
			}
			most.text -= int(info.Size())
			text, err = repos.ReadSmall(real, maxConfig)
		}
	}
	if err != nil {
		if repos.Absent(err) || !errors.As(err, new(*fs.PathError)) { // a loop of links
			err = nil
		}
		return false, err
	}
	text = bytes.ToLower(text)
	for _, word := range tellingWords() {
		if bytes.Contains(text, []byte(word)) {
			most.files--
			if most.tells -= len(text); most.tells < 0 || most.files < 0 {
				return false, repos.ErrMore
			}
			return true, nil
		}
	}
	return false, nil
}

func included(key string) bool {
	return key == "include.path" || strings.HasPrefix(key, "includeif.") && strings.HasSuffix(key, ".path")
}

func expand(path, dir, home string) string {
	if user, rest, ok := strings.Cut(path, "/"); ok && strings.HasPrefix(user, "~") { // ~NAME too, whoever that is
		return filepath.Join(home, rest)
	}
	return repos.Joined(dir, path)
}
