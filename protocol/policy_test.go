package protocol

import (
	"bytes"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"sandboxd/internal/mpack"
)

func anyPolicy(t *rapid.T) Policy {
	path := rapid.StringMatching(`/[a-zü/ ]{0,200}`)
	paths := func(name string) []string { return rapid.SliceOfN(path, 0, 20).Draw(t, name) }
	n := rapid.Uint64()
	p := Policy{
		WritableRoots: paths("rw"), ReadableRoots: paths("ro"), Protected: paths("protected"), EnvAllow: paths("env"),
		Network: Network{Mode: rapid.SampledFrom([]NetMode{NetOff, NetFull, NetProxy}).Draw(t, "mode"), Allow: paths("allow"), Proxy: path.Draw(t, "proxy")},
		Limits:  Limits{n.Draw(t, "cpu"), n.Draw(t, "wall"), n.Draw(t, "mem"), n.Draw(t, "pids"), n.Draw(t, "fsize"), n.Draw(t, "output")},
		Scratch: path.Draw(t, "scratch"), Mounts: []Mount{},
	}
	for range rapid.IntRange(0, 20).Draw(t, "mounts") {
		p.Mounts = append(p.Mounts, Mount{path.Draw(t, "path"), rapid.SampledFrom([]Access{ReadOnly, ReadWrite}).Draw(t, "access"), rapid.Bool().Draw(t, "required")})
	}
	return p
}

// written reads a policy's bytes by the tables of PROTOCOL.md, section 6.
func written(t *rapid.T, b []byte) (p Policy) {
	text := func(to *string) func(*mpack.Reader) error {
		return func(r *mpack.Reader) (err error) { *to, err = r.Str(); return err }
	}
	var v uint64
	var mode string
	network := []mpack.Field{strField("mode", &mode), {Name: "allow", Optional: true, Read: func(r *mpack.Reader) (err error) { p.Network.Allow, err = r.Strs(); return err }},
		{Name: "proxy", Optional: true, Read: text(&p.Network.Proxy)}}
	limits := []mpack.Field{uintField("cpu_s", &p.Limits.CPUSeconds), uintField("wall_s", &p.Limits.WallSeconds), uintField("mem_bytes", &p.Limits.MemBytes),
		uintField("pids", &p.Limits.Pids), uintField("fsize_bytes", &p.Limits.FsizeBytes), uintField("output_bytes", &p.Limits.OutputBytes)}
	p.Mounts = []Mount{}
	r := mpack.NewReader(b)
	err := r.Object([]mpack.Field{
		uintField("v", &v), strsField("writable_roots", &p.WritableRoots), strsField("readable_roots", &p.ReadableRoots),
		strsField("protected", &p.Protected), strsField("env_allow", &p.EnvAllow), strField("scratch", &p.Scratch),
		{Name: "network", Read: func(r *mpack.Reader) error { return r.Object(network) }},
		{Name: "limits", Read: func(r *mpack.Reader) error { return r.Object(limits) }},
		{Name: "mounts", Read: func(r *mpack.Reader) error {
			return r.Each(func(int) error {
				var m Mount
				var access string
				err := r.Object([]mpack.Field{strField("path", &m.Path), strField("access", &access), boolField("required", &m.Required)})
				m.Access = Access(access)
				p.Mounts = append(p.Mounts, m)
				return err
			})
		}},
	})
	if err == nil {
		err = r.End()
	}
	if err != nil || v != PolicyVersion {
		t.Fatalf("version %d, %v: %x", v, err, b)
	}
	p.Network.Mode = NetMode(mode)
	return p
}

// sorted says whether every map in a value has its keys in the order of their bytes.
func sorted(t *rapid.T, raw []byte) {
	r := mpack.NewReader(raw)
	if c := raw[0]; c>>4 == 9 || c == 0xdc {
		_ = r.Each(func(int) error {
			one, err := r.Raw()
			sorted(t, one)
			return err
		})
		return
	} else if c>>4 != 8 && c != 0xde {
		return
	}
	n, _ := r.Map()
	var last []byte
	for range n {
		key, err := r.Str()
		if err != nil || last != nil && bytes.Compare(last, []byte(key)) >= 0 {
			t.Fatalf("%q comes behind %q: %v", key, last, err)
		}
		last = []byte(key)
		value, _ := r.Raw()
		sorted(t, value)
	}
}

// A policy says on the wire what it says in Go, in canonical form: a broker in any
// language would write these bytes, and nothing that mode does not have.
func TestPolicyOnTheWire(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := anyPolicy(t)
		b := p.Append([]byte("before"))
		if !bytes.HasPrefix(b, []byte("before")) {
			t.Fatal("what was there is gone")
		}
		b = b[len("before"):]
		sorted(t, b)
		want := p
		if p.Network.Mode != NetProxy {
			want.Network = Network{Mode: p.Network.Mode}
		}
		if got := written(t, b); !reflect.DeepEqual(got, want) {
			t.Fatalf("got\n%+v, want\n%+v", got, want)
		}
		limits := p.Limits.Append(nil)
		if sorted(t, limits); !bytes.Contains(b, limits) {
			t.Fatal("the limits that stand alone are others than those of the policy")
		}
	})
	empty := Policy{Network: Network{Mode: NetProxy}}
	full := Policy{WritableRoots: []string{}, ReadableRoots: []string{}, Protected: []string{}, Mounts: []Mount{}, EnvAllow: []string{}, Network: Network{Mode: NetProxy, Allow: []string{}}}
	if !bytes.Equal(empty.Append(nil), full.Append(nil)) {
		t.Error("a list that is nil is another than an empty one")
	}
}
