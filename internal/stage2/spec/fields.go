package spec

import "sandboxd/internal/mpack"

// Readers for one value each. What the kernel takes as bytes (arguments,
// variables, paths) travels as bin: a file name need not be UTF-8.

func text(p *string) func(*mpack.Reader) error {
	return func(r *mpack.Reader) (err error) {
		*p, err = r.Str()
		return err
	}
}

func octets(p *string) func(*mpack.Reader) error {
	return func(r *mpack.Reader) error {
		b, err := r.Bin()
		*p = string(b)
		return err
	}
}

func number(p *uint64) func(*mpack.Reader) error {
	return func(r *mpack.Reader) (err error) {
		*p, err = r.Uint()
		return err
	}
}

func truth(p *bool) func(*mpack.Reader) error {
	return func(r *mpack.Reader) (err error) {
		*p, err = r.Bool()
		return err
	}
}

// list reads an array of at most limit values. An empty one becomes nil, so that
// every value has one form.
func list[T any](p *[]T, limit int, read func(*T) func(*mpack.Reader) error) func(*mpack.Reader) error {
	return func(r *mpack.Reader) error {
		return r.Each(func(i int) error {
			if i >= limit {
				return r.Fail("more than %d values", limit)
			}
			var v T
			if err := read(&v)(r); err != nil {
				return err
			}
			*p = append(*p, v)
			return nil
		})
	}
}

func object(fields ...mpack.Field) func(*mpack.Reader) error {
	return func(r *mpack.Reader) error { return r.Object(fields) }
}

func whole(b []byte, read func(*mpack.Reader) error) error {
	r := mpack.NewReader(b)
	if err := read(r); err != nil {
		return err
	}
	return r.End()
}

func appendOctets(dst []byte, name, v string) []byte {
	return mpack.AppendBin(mpack.AppendStr(dst, name), []byte(v))
}

func appendText(dst []byte, name, v string) []byte {
	return mpack.AppendStr(mpack.AppendStr(dst, name), v)
}

func appendNumber(dst []byte, name string, v uint64) []byte {
	return mpack.AppendUint(mpack.AppendStr(dst, name), v)
}

func appendTruth(dst []byte, name string, v bool) []byte {
	return mpack.AppendBool(mpack.AppendStr(dst, name), v)
}

func appendList[T any](dst []byte, name string, vs []T, one func([]byte, T) []byte) []byte {
	dst = mpack.AppendArray(mpack.AppendStr(dst, name), len(vs))
	for _, v := range vs {
		dst = one(dst, v)
	}
	return dst
}

func appendBin(dst []byte, v string) []byte { return mpack.AppendBin(dst, []byte(v)) }
