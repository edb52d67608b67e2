package policy

import (
	"bytes"
	"errors"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"sandboxd/internal/mpack"
	"sandboxd/protocol"
)

// doc is a policy document as raw values, so that a test can break one of them.
type doc map[string][]byte

func (d doc) bytes() []byte {
	b := mpack.AppendMap(nil, len(d))
	for _, key := range slices.Sorted(maps.Keys(d)) {
		b = append(mpack.AppendStr(b, key), d[key]...)
	}
	return b
}

func strs(s ...string) []byte { return mpack.AppendStrs(nil, s) }
func str1(s string) []byte    { return mpack.AppendStr(nil, s) }
func num(v uint64) []byte     { return mpack.AppendUint(nil, v) }

func validDoc() doc {
	return doc{
		"v": num(2), "writable_roots": strs("/w"), "readable_roots": strs("/r"), "protected": strs("/w/.git"),
		"mounts":  append(mpack.AppendArray(nil, 1), mountDoc().bytes()...),
		"network": doc{"mode": str1("off")}.bytes(), "limits": limitsDoc().bytes(),
		"env_allow": strs("PATH"), "scratch": str1("tmpfs"),
	}
}

func mountDoc() doc {
	return doc{"path": str1("/run/s"), "access": str1("ro"), "required": mpack.AppendBool(nil, true)}
}

func limitsDoc() doc {
	return doc{"cpu_s": num(1), "wall_s": num(2), "mem_bytes": num(3), "pids": num(4), "fsize_bytes": num(5), "output_bytes": num(6)}
}

func validPolicy() protocol.Policy {
	return protocol.Policy{
		WritableRoots: []string{"/w"}, ReadableRoots: []string{"/r"}, Protected: []string{"/w/.git"},
		Mounts:  []protocol.Mount{{Path: "/run/s", Access: protocol.ReadOnly, Required: true}},
		Network: protocol.Network{Mode: protocol.NetOff},
		Limits: protocol.Limits{CPUSeconds: 1, WallSeconds: 2, MemBytes: 3, Pids: 4,
			FsizeBytes: 5, OutputBytes: 6},
		EnvAllow: []string{"PATH"}, Scratch: protocol.ScratchTmpfs,
	}
}

func (d doc) with(key string, value []byte) doc { d[key] = value; return d }
func (d doc) without(key string) doc            { delete(d, key); return d }

func oneMount(m doc) []byte { return append(mpack.AppendArray(nil, 1), m.bytes()...) }

func TestDecodeGivesTheWholePolicy(t *testing.T) {
	b := validDoc().bytes()
	p, err := Decode(b)
	if err != nil {
		t.Fatal(err)
	}
	if want := validPolicy(); !reflect.DeepEqual(p, want) {
		t.Errorf("got %+v\nwant %+v", p, want)
	}
	if !bytes.Equal(p.Append(nil), b) {
		t.Error("encoding the decoded policy gives other bytes")
	}
}

func TestDecodeAcceptsEveryNetworkMode(t *testing.T) {
	proxy := doc{"mode": str1("proxy"), "allow": strs("*.example.org:443"), "proxy": str1("127.0.0.1:3128")}
	for want, n := range map[protocol.NetMode]doc{
		"off": {"mode": str1("off")}, "full": {"mode": str1("full")}, "proxy": proxy,
	} {
		p, err := Decode(validDoc().with("network", n.bytes()).bytes())
		if err != nil || p.Network.Mode != want {
			t.Errorf("%s: mode %q, %v", want, p.Network.Mode, err)
		}
	}
	p, _ := Decode(validDoc().with("network", proxy.bytes()).bytes())
	if len(p.Network.Allow) != 1 || p.Network.Proxy != "127.0.0.1:3128" {
		t.Errorf("got %+v", p.Network)
	}
}

func TestDecodeNormalisesSlashes(t *testing.T) {
	d := validDoc().with("writable_roots", strs("//w///x/")).with("protected", strs("/w/p/")).with("scratch", str1("/s//t/"))
	d.with("readable_roots", strs("//"))
	p, err := Decode(d.bytes())
	if err != nil {
		t.Fatal(err)
	}
	got := []string{p.WritableRoots[0], p.Protected[0], p.Scratch, p.ReadableRoots[0]}
	if want := []string{"/w/x", "/w/p", "/s/t", "/"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestDecodeRefuses(t *testing.T) {
	nilValue, float := []byte{0xc0}, []byte{0xca, 0, 0, 0, 0}
	tests := []struct {
		name string
		in   []byte
		path string
		msg  string
	}{
		{"nothing", nil, "", "end of input"},
		{"an array", strs("v"), "", "expected map"},
		{"trailing bytes", append(validDoc().bytes(), 0xc0), "", "behind it"},
		{"a map that cannot fit", []byte{0xdf, 0xff, 0xff, 0xff, 0xff}, "", "do not fit"},
		{"an older version", doc{"v": num(1), "roots": strs()}.bytes(), "v", "version 1, expected 2"},
		{"a newer version", validDoc().with("v", num(3)).with("extra", num(0)).bytes(), "v", "version 3, expected 2"},
		{"a version that is no number", validDoc().with("v", str1("2")).bytes(), "v", "found string"},
		{"no version", validDoc().without("v").bytes(), "v", "missing"},
		{"an unknown key", validDoc().with("extra", num(0)).bytes(), "extra", "unknown"},
		{"a missing list", validDoc().without("protected").bytes(), "protected", "missing"},
		{"a duplicate key", duplicate("scratch", str1("tmpfs")), "scratch", "duplicate"},
		{"nil for a list", validDoc().with("protected", nilValue).bytes(), "protected", "found nil"},
		{"nil in a list", validDoc().with("protected", append(mpack.AppendArray(nil, 1), 0xc0)).bytes(), "protected[0]", "found nil"},
		{"binary for a path", validDoc().with("scratch", mpack.AppendBin(nil, []byte("/s"))).bytes(), "scratch", "found binary"},
		{"invalid UTF-8", validDoc().with("readable_roots", strs("/a", "/\xff")).bytes(), "readable_roots[1]", "UTF-8"},
		{"a mount's unknown key", validDoc().with("mounts", oneMount(mountDoc().with("x", num(1)))).bytes(), "mounts[0].x", "unknown"},
		{"a mount's missing key", validDoc().with("mounts", oneMount(mountDoc().without("required"))).bytes(), "mounts[0].required", "missing"},
		{"a mount's number", validDoc().with("mounts", oneMount(mountDoc().with("required", num(1)))).bytes(), "mounts[0].required", "found integer"},
		{"another access", validDoc().with("mounts", oneMount(mountDoc().with("access", str1("wo")))).bytes(), "mounts[0].access", `"wo"`},
		{"no mode", validDoc().with("network", doc{}.bytes()).bytes(), "network.mode", "missing"},
		{"another mode", validDoc().with("network", doc{"mode": str1("on")}.bytes()).bytes(), "network.mode", `"on"`},
		{"a proxy's key elsewhere", validDoc().with("network", doc{"mode": str1("off"), "allow": strs()}.bytes()).bytes(), "network.allow", "remove"},
		{"an empty proxy elsewhere", validDoc().with("network", doc{"mode": str1("full"), "proxy": str1("")}.bytes()).bytes(), "network.proxy", "remove"},
		{"a proxy without allow", validDoc().with("network", doc{"mode": str1("proxy"), "proxy": str1("h:1")}.bytes()).bytes(), "network.allow", "missing"},
		{"a proxy without proxy", validDoc().with("network", doc{"mode": str1("proxy"), "allow": strs()}.bytes()).bytes(), "network.proxy", "missing"},
		{"a missing limit", validDoc().with("limits", limitsDoc().without("pids").bytes()).bytes(), "limits.pids", "missing"},
		{"a negative limit", validDoc().with("limits", limitsDoc().with("pids", mpack.AppendInt(nil, -1)).bytes()).bytes(), "limits.pids", "negative"},
		{"a float", validDoc().with("limits", limitsDoc().with("cpu_s", float).bytes()).bytes(), "limits.cpu_s", "found float"},
		{"a limit too large", validDoc().with("limits", limitsDoc().with("wall_s", num(1<<63)).bytes()).bytes(), "limits.wall_s", "9223372036854775807"},
		{"a rule of values", validDoc().with("protected", strs("/")).bytes(), "protected[0]", "found"},
		{"too many entries", validDoc().with("readable_roots", strs(slices.Repeat([]string{"/r"}, MaxEntries)...)).bytes(), "readable_roots[2797]", "2800"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, err := Decode(tt.in)
			wantError(t, err, tt.path, tt.msg)
			if !reflect.DeepEqual(p, protocol.Policy{}) {
				t.Errorf("the policy beside the error is not zero: %+v", p)
			}
		})
	}
}

func duplicate(key string, value []byte) []byte {
	d := validDoc()
	b := append(mpack.AppendMap(nil, len(d)+1), d.bytes()[1:]...)
	return append(mpack.AppendStr(b, key), value...)
}

func wantError(t *testing.T, err error, path, msg string) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) {
		t.Fatalf("got %v, want an *Error at %q", err, path)
	}
	if e.Path != path || !strings.Contains(e.Msg, msg) {
		t.Errorf("got %q, want path %q and a message with %q", err, path, msg)
	}
}

func TestDecodeLimits(t *testing.T) {
	l, err := DecodeLimits(limitsDoc().with("mem_bytes", num(math.MaxInt64)).bytes())
	want := protocol.Limits{CPUSeconds: 1, WallSeconds: 2, MemBytes: math.MaxInt64, Pids: 4, FsizeBytes: 5, OutputBytes: 6}
	if err != nil || l != want {
		t.Fatalf("got %+v, %v", l, err)
	}
	for _, tt := range []struct {
		name string
		in   []byte
		path string
	}{
		{"missing", limitsDoc().without("cpu_s").bytes(), "limits.cpu_s"},
		{"unknown", limitsDoc().with("gpus", num(1)).bytes(), "limits.gpus"},
		{"too large", limitsDoc().with("pids", num(math.MaxUint64)).bytes(), "limits.pids"},
		{"no map", num(1), "limits"},
		{"trailing", append(limitsDoc().bytes(), 0), "limits"},
	} {
		l, err := DecodeLimits(tt.in)
		wantError(t, err, tt.path, "")
		if l != (protocol.Limits{}) {
			t.Errorf("%s: the limits beside the error are not zero", tt.name)
		}
	}
}
