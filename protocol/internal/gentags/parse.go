package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

type tag struct {
	ID                     string
	Feature, Applied, Skip bool
	Platforms              []string
	Meaning                string
}

// table is one [[tag]] as it stands in the file.
type table struct {
	line   int
	values map[string]string
}

var assignment = regexp.MustCompile(`^([a-z]+) = (true|false|"[^"\\]*"|\["[^"\\]*"(?:, "[^"\\]*")*\])$`)

var keys = []string{"id", "feature", "applied", "skip", "platforms", "meaning"}

// parse reads the whole file or fails with the line's number.
func parse(src string) ([]tag, error) {
	tables, err := split(src)
	if err != nil {
		return nil, err
	}
	var tags []tag
	seen := map[string]bool{}
	for _, t := range tables {
		tag, err := t.tag()
		if err == nil && seen[tag.ID] {
			err = fmt.Errorf("duplicate id %q", tag.ID)
		}
		if err != nil {
			return nil, fmt.Errorf("tag of line %d: %w", t.line, err)
		}
		seen[tag.ID] = true
		tags = append(tags, tag)
	}
	return tags, nil
}

func split(src string) ([]table, error) {
	var tables []table
	for i, line := range strings.Split(src, "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if line == "[[tag]]" {
			tables = append(tables, table{line: i + 1, values: map[string]string{}})
			continue
		}
		m := assignment.FindStringSubmatch(line)
		if m == nil || len(tables) == 0 {
			return nil, fmt.Errorf("line %d: expected [[tag]] or key = value", i+1)
		}
		values := tables[len(tables)-1].values
		if !slices.Contains(keys, m[1]) || values[m[1]] != "" {
			return nil, fmt.Errorf("line %d: unknown or duplicate key %q", i+1, m[1])
		}
		values[m[1]] = m[2]
	}
	return tables, nil
}

func (t table) tag() (tag tag, err error) {
	for _, key := range keys {
		if t.values[key] == "" {
			return tag, fmt.Errorf("missing key %q", key)
		}
	}
	str := func(key string) string {
		v := t.values[key]
		if !strings.HasPrefix(v, `"`) || v == `""` {
			err = fmt.Errorf("%s: expected string", key)
		}
		return strings.Trim(v, `"`)
	}
	boolean := func(key string) bool {
		if v := t.values[key]; v != "true" && v != "false" {
			err = fmt.Errorf("%s: expected boolean", key)
		}
		return t.values[key] == "true"
	}
	tag.ID, tag.Meaning = str("id"), str("meaning")
	tag.Feature, tag.Applied, tag.Skip = boolean("feature"), boolean("applied"), boolean("skip")
	for _, p := range strings.Split(strings.Trim(t.values["platforms"], "[]"), ", ") {
		tag.Platforms = append(tag.Platforms, strings.Trim(p, `"`))
	}
	if err != nil {
		return tag, err
	}
	return tag, tag.check()
}

var goodID = regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]+)*$`)

func (t tag) check() error {
	if !goodID.MatchString(t.ID) {
		return fmt.Errorf("id %q: expected lower-case words with hyphens", t.ID)
	}
	if !t.Feature && !t.Applied && !t.Skip {
		return fmt.Errorf("%s can appear nowhere", t.ID)
	}
	for _, p := range t.Platforms {
		if !slices.Contains([]string{"linux", "darwin", "other"}, p) {
			return fmt.Errorf("%s: unknown platform %q", t.ID, p)
		}
	}
	return nil
}
