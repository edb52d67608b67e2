package fence

import (
	"fmt"
	"path/filepath"
	"strings"
)

// Environ looks a variable up; the second result says whether it is set.
type Environ func(name string) (string, bool)

// candidate is one place that a cache may be at, as spelled.
type candidate struct {
	cache  *Cache
	path   string
	direct bool // a variable names exactly it, so that its absence is news
}

// candidates expands the table for one environment. The notes name what cannot be
// used: a relative path, which every directory reads differently.
func candidates(env Environ) (out []candidate, notes []string) {
	seen := map[string]bool{}
	for i := range Caches {
		c := &Caches[i]
		dir, direct, why := c.place(env)
		if why != "" {
			notes = append(notes, fmt.Sprintf("%s cache: not granted: %s", c.Tool, why))
		}
		if dir == "" {
			continue
		}
		for _, tail := range c.Tails {
			path := filepath.Join(dir, tail)
			if !seen[path] {
				seen[path] = true
				out = append(out, candidate{c, path, direct})
			}
		}
	}
	return out, notes
}

// place finds the directory that the tails are below, "" where there is none. direct
// says that a variable names the cache itself, why that a variable is to blame. An empty variable is taken as unset, as the
// tools do.
func (c *Cache) place(env Environ) (dir string, direct bool, why string) {
	for _, s := range c.Sources {
		value, _ := env(s.Var)
		if s.List {
			value = firstOf(value)
		}
		if value == "" {
			continue
		}
		if !usable(value) {
			return "", true, s.Var + " is not an absolute path"
		}
		return filepath.Join(value, s.Tail), s.Tail == "", ""
	}
	home, _ := env("HOME")
	if !usable(home) {
		return "", false, "" // said once, for all of them
	}
	return filepath.Join(home, c.Default), false, ""
}

func firstOf(list string) string {
	first, _, _ := strings.Cut(list, string(filepath.ListSeparator))
	return first
}

// usable says whether a path can stand in a policy.
func usable(path string) bool {
	return filepath.IsAbs(path) && !strings.ContainsRune(path, 0) && len(path) < 4096
}
