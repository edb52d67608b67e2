package cli

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"sandboxd/protocol"
)

type setter = func(o *options, value string) error

func text(at func(*options) *string) setter {
	return func(o *options, v string) error {
		if v == "" {
			return errors.New("is empty")
		}
		*at(o) = v
		return nil
	}
}

func list(at func(*options) *[]string) setter {
	return func(o *options, v string) error {
		if v == "" {
			return errors.New("is empty")
		}
		*at(o) = append(*at(o), v)
		return nil
	}
}

func toggle(at func(*options) *bool) setter {
	return func(o *options, _ string) error { *at(o) = true; return nil }
}

func number(at func(*options) *uint64) setter {
	return func(o *options, v string) (err error) { *at(o), err = parseNumber(v); return err }
}

func size(at func(*options) *uint64) setter {
	return func(o *options, v string) (err error) { *at(o), err = parseSize(v); return err }
}

func seconds(at func(*options) *uint64) setter {
	return func(o *options, v string) (err error) { *at(o), err = parseSeconds(v); return err }
}

func setNet(o *options, v string) error {
	switch m := protocol.NetMode(v); m {
	case protocol.NetOff, protocol.NetFull:
		o.net = m
		return nil
	}
	return errors.New("expected off or full")
}

func setPreset(o *options, v string) error {
	if v != presetWorkspace && v != presetFence {
		return errors.New("expected workspace or fence")
	}
	o.preset = v
	return nil
}

func setFormat(o *options, v string) error {
	if v != "json" && v != "msgpack" {
		return errors.New("expected json or msgpack")
	}
	o.format = v
	return nil
}

func setMount(o *options, v string) error {
	m := protocol.Mount{Path: v, Access: protocol.ReadOnly, Required: true}
	if path, access, ok := cutLast(v, ":"); ok && (access == "ro" || access == "rw") {
		m.Path, m.Access = path, protocol.Access(access)
	}
	if m.Path == "" {
		return errors.New("is empty")
	}
	o.mounts = append(o.mounts, m)
	return nil
}

func setEnv(o *options, v string) error {
	if name, _, _ := strings.Cut(v, "="); name == "" || strings.ContainsRune(v, 0) {
		return errors.New("expected NAME or NAME=VALUE")
	}
	o.env = append(o.env, v)
	return nil
}

// setAcceptSkip knows the layers by name, which the helper would only refuse.
func setAcceptSkip(o *options, v string) error {
	known := slices.ContainsFunc(protocol.Tags(), func(t protocol.Tag) bool { return t.ID == v })
	if !known {
		var names []string
		for _, t := range protocol.Tags() {
			if t.Skip && slices.Contains(t.Platforms, runtime.GOOS) {
				names = append(names, t.ID)
			}
		}
		return fmt.Errorf("is no layer's name; these are: %s", strings.Join(names, ", "))
	}
	o.acceptSkip = append(o.acceptSkip, v)
	return nil
}

// unexpanded says that a path begins with a ~ that a shell would have replaced, had it
// stood by itself and without quotes.
func unexpanded(path string) error {
	if path == "~" || strings.HasPrefix(path, "~/") {
		return fmt.Errorf(`no shell has expanded the ~ of %q; write "$HOME"%s, or ./%s for a file of that name`, path, path[1:], path)
	}
	return nil
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// parseNumber reads a count; limits fit in a signed 64-bit number.
func parseNumber(s string) (uint64, error) {
	n, err := strconv.ParseUint(s, 10, 63)
	if err != nil {
		return 0, fmt.Errorf("expected a whole number from 0 to %d", math.MaxInt64)
	}
	return n, nil
}

// parseSize reads bytes with an optional K, M, G or T (powers of 1024), also written
// as KiB or KB.
func parseSize(s string) (uint64, error) {
	digits := strings.TrimRight(s, "KMGTkmgtiIbB")
	unit := strings.ToUpper(s[len(digits):])
	shift, ok := map[string]int{"": 0, "B": 0}[unit]
	if !ok {
		at := strings.IndexByte("KMGT", unit[0])
		if tail := unit[1:]; at < 0 || (tail != "" && tail != "B" && tail != "IB") {
			return 0, errors.New("expected a size such as 512M, with K, M, G or T")
		}
		shift = 10 * (at + 1)
	}
	n, err := parseNumber(digits)
	if err != nil {
		return 0, errors.New("expected a size such as 512M: a whole number with K, M, G or T")
	}
	if bits.Len64(n)+shift > 63 {
		return 0, errors.New("is too large")
	}
	return n << shift, nil
}

// parseSeconds reads whole seconds, as a number or with a unit. The kernel and the
// policy count in seconds, and a part of one would have to become more or less than
// was asked for.
func parseSeconds(s string) (uint64, error) {
	if n, err := parseNumber(s); err == nil {
		return n, nil
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		return 0, errors.New("expected a time such as 30s, 5m or 1h")
	}
	if d%time.Second != 0 {
		return 0, errors.New("expected whole seconds, such as 1s: no limit here counts in less")
	}
	return uint64(d / time.Second), nil
}
