package policy

import (
	"errors"

	"sandboxd/internal/mpack"
	"sandboxd/protocol"
)

// Decode reads a policy document: strict msgpack, exactly the keys of wire
// version 2, nothing behind it. The policy is valid and normalised; empty lists
// are nil. On error, which is an *Error, it is the zero value.
func Decode(b []byte) (protocol.Policy, error) {
	if err := checkVersion(b); err != nil {
		return protocol.Policy{}, err
	}
	r := mpack.NewReader(b)
	var d document
	err := r.Object(d.fields())
	if err == nil {
		err = r.End()
	}
	if err != nil {
		return protocol.Policy{}, convert("", err)
	}
	if err := NetworkKeys(d.p.Network.Mode, d.allow, d.proxy); err != nil {
		return protocol.Policy{}, err
	}
	if err := Validate(d.p); err != nil {
		return protocol.Policy{}, err
	}
	return Normalise(d.p), nil
}

// DecodeLimits reads a limits map that stands alone, as in exec_start. Error
// paths begin with "limits", as they do in a whole policy.
func DecodeLimits(b []byte) (protocol.Limits, error) {
	r := mpack.NewReader(b)
	var l protocol.Limits
	err := r.Object(limitFields(&l))
	if err == nil {
		err = r.End()
	}
	if err != nil {
		return protocol.Limits{}, convert("limits", err)
	}
	if err := checkLimits(l); err != nil {
		return protocol.Limits{}, err
	}
	return l, nil
}

// checkVersion looks for another version before anything else is judged: its
// document has other keys, and an unknown key would be a misleading complaint.
// What is malformed is left to the strict reading.
func checkVersion(b []byte) error {
	r := mpack.NewReader(b)
	n, err := r.Map()
	if err != nil {
		return nil
	}
	for range n {
		key, err := r.Str()
		if err != nil {
			return nil
		}
		if key != "v" {
			if _, err := r.Raw(); err != nil {
				return nil
			}
			continue
		}
		v, err := r.Uint()
		if err == nil && v != protocol.PolicyVersion {
			return VersionError(v)
		}
		return nil
	}
	return nil
}

// VersionError is the error for a document of another version.
func VersionError(found uint64) error {
	return fail("v", "found policy version %d, expected %d; write the document by the rules of version %[2]d", found, protocol.PolicyVersion)
}

// convert makes a reader's error ours, at a path below prefix.
func convert(prefix string, err error) error {
	var e *mpack.Error
	if !errors.As(err, &e) {
		return &Error{Path: prefix, Msg: err.Error()}
	}
	path := e.Path
	switch {
	case path == "":
		path = prefix
	case prefix != "":
		path = prefix + "." + path
	}
	return &Error{Path: path, Msg: e.Msg}
}

// document is a policy while it is read.
type document struct {
	p       protocol.Policy
	entries int // of all lists so far

	allow, proxy bool // the network map has that key
}

func (d *document) fields() []mpack.Field {
	return []mpack.Field{
		{Name: "v", Read: func(r *mpack.Reader) error { _, err := r.Uint(); return err }}, // checkVersion judged it
		{Name: "writable_roots", Read: d.strs(&d.p.WritableRoots)},
		{Name: "readable_roots", Read: d.strs(&d.p.ReadableRoots)},
		{Name: "protected", Read: d.strs(&d.p.Protected)},
		{Name: "mounts", Read: d.mounts},
		{Name: "network", Read: d.network},
		{Name: "limits", Read: func(r *mpack.Reader) error { return r.Object(limitFields(&d.p.Limits)) }},
		{Name: "env_allow", Read: d.strs(&d.p.EnvAllow)},
		{Name: "scratch", Read: str(&d.p.Scratch)},
	}
}

// count keeps a frame full of tiny entries from growing a large slice.
func (d *document) count(r *mpack.Reader) error {
	d.entries++
	if d.entries > MaxEntries {
		return r.Fail("%s", tooMany())
	}
	return nil
}

func (d *document) strs(to *[]string) func(*mpack.Reader) error {
	return func(r *mpack.Reader) error {
		return r.Each(func(int) error {
			if err := d.count(r); err != nil {
				return err
			}
			s, err := r.Str()
			*to = append(*to, s)
			return err
		})
	}
}

func (d *document) mounts(r *mpack.Reader) error {
	return r.Each(func(int) error {
		if err := d.count(r); err != nil {
			return err
		}
		var m protocol.Mount
		err := r.Object([]mpack.Field{
			{Name: "path", Read: str(&m.Path)},
			{Name: "access", Read: str(&m.Access)},
			{Name: "required", Read: func(r *mpack.Reader) (err error) { m.Required, err = r.Bool(); return err }},
		})
		d.p.Mounts = append(d.p.Mounts, m)
		return err
	})
}

// network reads the keys of any mode, because the mode may come last.
func (d *document) network(r *mpack.Reader) error {
	n := &d.p.Network
	allow, proxy := d.strs(&n.Allow), str(&n.Proxy)
	return r.Object([]mpack.Field{
		{Name: "mode", Read: str(&n.Mode)},
		{Name: "allow", Optional: true, Read: func(r *mpack.Reader) error { d.allow = true; return allow(r) }},
		{Name: "proxy", Optional: true, Read: func(r *mpack.Reader) error { d.proxy = true; return proxy(r) }},
	})
}

func str[T ~string](to *T) func(*mpack.Reader) error {
	return func(r *mpack.Reader) error {
		s, err := r.Str()
		*to = T(s)
		return err
	}
}

func limitFields(l *protocol.Limits) []mpack.Field {
	fields := make([]mpack.Field, 0, 6)
	for _, f := range limits(l) {
		fields = append(fields, mpack.Field{Name: f.key, Read: func(r *mpack.Reader) (err error) { *f.value, err = r.Uint(); return err }})
	}
	return fields
}
