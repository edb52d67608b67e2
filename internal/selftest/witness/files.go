package witness

import (
	"os"
	"path/filepath"
	"strings"
)

// files runs ACTION=PATH arguments in order; the key of an answer is the ACTION.
// An ACTION may carry a number (write2=...) to be told from another one.
func files(r *reporter, args []string) {
	for _, arg := range args {
		key, path, _ := strings.Cut(arg, "=")
		found, err := act(strings.TrimRight(key, "0123456789"), path, r.nonce)
		r.answer(key, found, err)
	}
}

func act(action, path, text string) (string, error) {
	switch action {
	case "read":
		b, err := os.ReadFile(path)
		return string(b), err
	case "list":
		entries, err := os.ReadDir(path)
		var names []string
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return strings.Join(names, "\n"), err
	case "write": // an existing file, without making or emptying it
		return "", put(path, os.O_WRONLY, text)
	case "append":
		return "", put(path, os.O_WRONLY|os.O_APPEND, text)
	case "open": // for writing, without writing: what cannot be undone stays as it is
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err == nil {
			f.Close()
		}
		return "", err
	case "truncate":
		return "", os.Truncate(path, 0)
	case "create":
		return "", put(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, text)
	case "make": // with its parents
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return "", err
		}
		return "", put(path, os.O_WRONLY|os.O_CREATE, text)
	case "rename":
		return "", os.Rename(path, path+".away")
	case "replace": // by a rename over it
		if err := put(path+".new", os.O_WRONLY|os.O_CREATE, text); err != nil {
			return "", err
		}
		return "", os.Rename(path+".new", path)
	case "hardlink":
		return "", os.Link(path, path+".link")
	case "remove":
		return "", os.RemoveAll(path)
	case "stays":
		return "", findStaying(path)
	case "stat":
		_, err := os.Stat(path)
		return "", err
	}
	return "", errLacks
}

func put(path string, flags int, text string) error {
	f, err := os.OpenFile(path, flags, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if e := f.Close(); err == nil {
		err = e
	}
	return err
}

// search prints the content of everything it can read below DIR, one answer for
// each file, whatever the error of the others.
func search(r *reporter, args []string) {
	var all []byte
	var last error = errNone
	filepath.WalkDir(args[0], func(path string, d os.DirEntry, err error) error {
		if err != nil {
			last = err
			return nil
		}
		if d.IsDir() {
			return nil
		}
		b, err := os.ReadFile(path)
		if err != nil {
			last = err
		}
		all = append(all, b...)
		return nil
	})
	// The names that are known beforehand are tried even where the walk shows none.
	for _, path := range args[1:] {
		b, err := os.ReadFile(path)
		if err != nil {
			last = err
		}
		all = append(all, b...)
	}
	if len(all) > 0 {
		last = nil
	}
	r.answer("search", string(all), last)
}

// replant is the attack on a mask from above: a directory that holds the protected
// path is moved away, and the path made again in its place.
func replant(r *reporter, args []string) {
	ancestor, path, text := args[0], args[1], args[2]
	err := os.Rename(ancestor, ancestor+".away")
	r.answer("rename", "", err)
	err = os.MkdirAll(filepath.Dir(path), 0o755)
	if err == nil {
		err = put(path, os.O_WRONLY|os.O_CREATE, text)
	}
	r.answer("replant", "", err)
}

func link(r *reporter, args []string) {
	os.RemoveAll(args[1])
	r.answer("link", "", os.Symlink(args[0], args[1]))
}

// cmdline looks for one text in the arguments of a process and for another one in
// its environment, as /proc shows them.
func cmdline(r *reporter, args []string) {
	pid, text, value := args[0], args[1], args[2]
	r.answer("cmdline", "", contains(filepath.Join("/proc", pid, "cmdline"), text))
	r.answer("environ", "", contains(filepath.Join("/proc", pid, "environ"), value))
	r.answer("own", "", contains("/proc/self/cmdline", text))
}

func contains(path, text string) error {
	b, err := os.ReadFile(path)
	if err == nil && !strings.Contains(string(b), text) {
		err = errNone
	}
	return err
}

// findStaying looks for a process that stays with text as its argument (see stay).
func findStaying(text string) error {
	entries, err := os.ReadDir("/proc")
	if err == nil {
		err = errNone
	}
	for _, e := range entries {
		b, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		words := strings.Split(string(b), "\x00")
		if len(words) > 2 && words[1] == Prefix+"stay" && words[2] == text {
			return nil
		}
	}
	return err
}
