package policy

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"sandboxd/protocol"
)

type edit func(p *protocol.Policy)

func writable(s ...string) edit  { return func(p *protocol.Policy) { p.WritableRoots = s } }
func readable(s ...string) edit  { return func(p *protocol.Policy) { p.ReadableRoots = s } }
func protected(s ...string) edit { return func(p *protocol.Policy) { p.Protected = s } }
func envAllow(s ...string) edit  { return func(p *protocol.Policy) { p.EnvAllow = s } }
func scratch(s string) edit      { return func(p *protocol.Policy) { p.Scratch = s } }

// mounts are read-only; a leading "+" makes one read-write.
func mounts(paths ...string) edit {
	return func(p *protocol.Policy) {
		p.Mounts = nil
		for _, s := range paths {
			m := protocol.Mount{Path: s, Access: protocol.ReadOnly}
			if rest, ok := strings.CutPrefix(s, "+"); ok {
				m = protocol.Mount{Path: rest, Access: protocol.ReadWrite}
			}
			p.Mounts = append(p.Mounts, m)
		}
	}
}

func all(edits ...edit) edit {
	return func(p *protocol.Policy) {
		for _, e := range edits {
			e(p)
		}
	}
}

func plain(edits ...edit) protocol.Policy {
	p := protocol.Policy{Network: protocol.Network{Mode: protocol.NetOff}, Scratch: protocol.ScratchTmpfs}
	all(edits...)(&p)
	return p
}

func TestValidateAccepts(t *testing.T) {
	longest := "/" + strings.Repeat("a", MaxPath-1)
	for name, e := range map[string]edit{
		"nothing granted":                   all(),
		"the root as a root":                all(writable("/"), readable("/")),
		"the longest path":                  readable(longest),
		"dots that are names":               readable("/...", "/.git", "/a/..b", "/a./b"),
		"control characters and spaces":     readable("/a\n\x1b[m b"),
		"slashes too many in roots":         all(writable("/w//x/"), readable("//r"), protected("/w//x/y/"), scratch("/s/")),
		"repeated entries of lists":         all(writable("/w", "/w/"), readable("/r", "/r"), protected("/p", "/p"), envAllow("A", "A")),
		"a protected path at a root":        all(writable("/w"), protected("/w", "/w/a")),
		"a mount below /dev":                mounts("+/dev/kvm"),
		"names that only begin like /proc":  mounts("/process", "/sysroot", "/procs/x", "/developer"),
		"a mount beside a protected path":   all(protected("/a/b", "/a!", "/a/bc/d"), mounts("/a/c", "/a/b!", "/a/bc/e")),
		"read-only under a writable root":   all(writable("/w"), mounts("/w/x")),
		"read-write above a writable root":  all(writable("/w/x"), mounts("+/w")),
		"read-write at a writable root":     all(writable("/w"), mounts("+/w")),
		"read-only beside a writable root":  all(writable("/w/x"), mounts("/w/xy", "/w/x!")),
		"nested mounts":                     mounts("/m", "/m/n", "+/m/n/o"),
		"a host scratch":                    scratch("/var/scratch"),
		"odd but legal names of variables":  envAllow("a b", "é", "_", "1"),
		"entries up to the bound":           readable(slices.Repeat([]string{"/r"}, MaxEntries)...),
		"the largest limits":                func(p *protocol.Policy) { p.Limits = sameLimits(math.MaxInt64) },
		"a proxy that lets nothing through": func(p *protocol.Policy) { p.Network = protocol.Network{Mode: "proxy", Proxy: "h:1"} },
	} {
		p := plain(e)
		if err := Validate(p); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		n := Normalise(p)
		if err := Validate(n); err != nil {
			t.Errorf("%s, normalised: %v", name, err)
		}
		if got, err := Decode(p.Append(nil)); err != nil || !reflect.DeepEqual(got, n) {
			t.Errorf("%s: decoding its encoding gives %+v, %v", name, got, err)
		}
	}
}

func sameLimits(v uint64) protocol.Limits {
	return protocol.Limits{CPUSeconds: v, WallSeconds: v, MemBytes: v, Pids: v, FsizeBytes: v, OutputBytes: v}
}

func TestValidateRefuses(t *testing.T) {
	type refusal struct {
		name string
		edit edit
		path string
		msg  string
	}
	tests := []refusal{
		{"protected /", protected("/a", "//"), "protected[1]", "below it"},
		{"scratch /", scratch("/"), "scratch", "tmpfs"},
		{"scratch //", scratch("//"), "scratch", "tmpfs"},
		{"no scratch", scratch(""), "scratch", "tmpfs"},
		{"another scratch", scratch("ramfs"), "scratch", `"ramfs"`},
		{"dots in the scratch", scratch("/s/.."), "scratch", `".."`},
		{"a mount twice", mounts("/m", "/n", "/m"), "mounts[2].path", "mounts[0]"},
		{"a mount's trailing slash", mounts("/m/"), "mounts[0].path", `write "/m"`},
		{"a mount's doubled slash", mounts("/m", "/n//o"), "mounts[1].path", `write "/n/o"`},
		{"no access", func(p *protocol.Policy) { p.Mounts = []protocol.Mount{{Path: "/m"}} }, "mounts[0].access", `""`},
		{"protected at a mount", all(protected("/a", "/m"), mounts("/m")), "mounts[0].path", "protected[1]"},
		{"protected above a mount", all(protected("/a/b", "/m"), mounts("+/m/n/o")), "mounts[0].path", `protected[1] "/m"`},
		{"protected below a mount", all(protected("/a", "/m/n/o/"), mounts("/m")), "mounts[0].path", `protected[1] "/m/n/o/"`},
		{"protected above, others between", all(protected("/m", "/m/a", "/m/a/b"), mounts("/m/c")), "mounts[0].path", `protected[0]`},
		{"read-only at a root", all(writable("/w"), mounts("/w")), "mounts[0].access", "writable_roots[0]"},
		{"read-only above a root", all(writable("/a", "/w/x/y"), mounts("+/b", "/w")), "mounts[1].access", "writable_roots[1]"},
		{"an empty name", envAllow("A", ""), "env_allow[1]", "name"},
		{"a name with =", envAllow("A=b"), "env_allow[0]", "name"},
		{"a name with NUL", envAllow("A\x00"), "env_allow[0]", "name"},
		{"a name that is not UTF-8", envAllow("\xff"), "env_allow[0]", "name"},
		{"no mode", func(p *protocol.Policy) { p.Network.Mode = "" }, "network.mode", "expected"},
		{"hosts without a proxy", func(p *protocol.Policy) { p.Network.Allow = []string{"h"} }, "network.allow", "remove"},
		{"a proxy without its mode", func(p *protocol.Policy) { p.Network.Proxy = "h:1" }, "network.proxy", "remove"},
		{"one entry too many", all(writable(slices.Repeat([]string{"/w"}, MaxEntries)...), envAllow("A")), "env_allow[0]", "2800"},
		{"far too many", readable(slices.Repeat([]string{"/w"}, 2*MaxEntries)...), "readable_roots[2800]", "2800"},
	}
	for _, path := range []string{"/", "/proc", "/dev", "/sys", "/proc/1", "/sys/fs/cgroup"} {
		tests = append(tests, refusal{"a mount of " + path, mounts("+" + path), "mounts[0].path", "jail's own"})
	}
	for i, key := range []string{"cpu_s", "wall_s", "mem_bytes", "pids", "fsize_bytes", "output_bytes"} {
		tests = append(tests, refusal{"too large " + key, func(p *protocol.Policy) {
			reflect.ValueOf(&p.Limits).Elem().Field(i).SetUint(1 << 63)
		}, "limits." + key, "found 9223372036854775808"})
	}
	for bad, msg := range map[string]string{
		"": "empty", "w": "begin it with /", "./w": "begin it with /", "~/w": "begin it with /",
		"/a/./b": `"."`, "/a/..": `".."`, "/..": `".."`, "/.": `"."`, "/a\x00b": "NUL", "/\xff": "UTF-8",
		"/" + strings.Repeat("a", MaxPath): "4096 bytes", strings.Repeat("/", MaxPath+1): "4096 bytes",
	} {
		for key, e := range map[string]edit{
			"writable_roots[1]": writable("/ok", bad), "readable_roots[1]": readable("/ok", bad),
			"protected[1]": protected("/ok", bad), "mounts[1].path": mounts("/ok", bad),
		} {
			tests = append(tests, refusal{fmt.Sprintf("%q in %s", bad[:min(len(bad), 9)], key), e, key, msg})
		}
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { wantError(t, Validate(plain(tt.edit)), tt.path, tt.msg) })
	}
}

func TestMessagesStayOnOneLine(t *testing.T) {
	for name, p := range map[string]protocol.Policy{
		"relative":    plain(readable("a\nb\x1b[2J")),
		"dots":        plain(writable("/a\n/../\x07")),
		"mount":       plain(mounts("/a\n/")),
		"overlap":     plain(protected("/a\n"), mounts("/a\n/b")),
		"environment": plain(envAllow("a\n=")),
	} {
		err := Validate(p)
		if err == nil || strings.ContainsAny(err.Error(), "\n\x1b\x07") || !strings.Contains(err.Error(), `\n`) {
			t.Errorf("%s: %q", name, err)
		}
	}
	for _, of := range []string{"é", "€"} { // one is cut between two characters, one is not
		long := strings.Repeat(of, 4000/len(of))
		err := Validate(plain(readable(long)))
		if err == nil || len(err.Error()) > 400 || !strings.Contains(err.Error(), fmt.Sprintf("(%d bytes)", len(long))) || strings.Contains(err.Error(), `\x`) {
			t.Errorf("a long value is not cut: %v", err)
		}
	}
}

func TestNormaliseLeavesItsInputAlone(t *testing.T) {
	p := plain(writable("/w/"), mounts("/m"))
	n := Normalise(p)
	n.Mounts[0].Path = "/changed"
	if p.WritableRoots[0] != "/w/" || n.WritableRoots[0] != "/w" || p.Mounts[0].Path != "/m" {
		t.Errorf("input %+v, output %+v", p, n)
	}
}

func TestWritable(t *testing.T) {
	p := plain(all(writable("/w", "/x"), readable("/r"), mounts("/ro", "+/rw")))
	if got := Writable(p); !slices.Equal(got, []string{"/w", "/x", "/rw"}) {
		t.Errorf("got %q", got)
	}
	p.Scratch = "/s"
	if got := Writable(p); !slices.Equal(got, []string{"/w", "/x", "/rw", "/s"}) {
		t.Errorf("got %q", got)
	}
	if got := append(Writable(p)[:1], "/changed"); p.WritableRoots[1] != "/x" {
		t.Errorf("it shares the policy's memory: %q", got)
	}
}

func TestErrorWithoutAPath(t *testing.T) {
	_, err := Decode(nil)
	var e *Error
	if !errors.As(err, &e) || e.Error() != e.Msg {
		t.Errorf("got %v", err)
	}
}
