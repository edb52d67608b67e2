package mpack

// Field is one key of a map and how to read its value.
type Field struct {
	Name     string
	Optional bool // it may be absent; Read is then not called
	Read     func(*Reader) error
}

// Object reads a map that has exactly the given fields, in any order. An unknown,
// missing or duplicate key is an error whose path ends in that key. An error of
// another type from Read becomes an *Error at the field's path.
func (r *Reader) Object(fields []Field) error {
	n, err := r.enterMap()
	if err != nil {
		return err
	}
	defer r.leave()
	seen := make([]bool, len(fields))
	for range n {
		if err := r.field(fields, seen); err != nil {
			return err
		}
	}
	for i, f := range fields {
		if !seen[i] && !f.Optional {
			return r.at(segment{key: f.Name, index: -1}, func() error { return r.Fail("missing key") })
		}
	}
	return nil
}

func (r *Reader) field(fields []Field, seen []bool) error {
	key, err := r.text()
	if err != nil {
		return err
	}
	for i, f := range fields {
		if f.Name != string(key) {
			continue
		}
		return r.at(segment{key: f.Name, index: -1}, func() error {
			if seen[i] {
				return r.Fail("duplicate key")
			}
			seen[i] = true
			return f.Read(r)
		})
	}
	return r.at(segment{key: string(key), index: -1}, func() error { return r.Fail("unknown key") })
}

// Each reads an array and calls read, which must read one value, for each entry.
func (r *Reader) Each(read func(i int) error) error {
	n, err := r.enterArray()
	if err != nil {
		return err
	}
	defer r.leave()
	for i := range n {
		if err := r.at(segment{index: i}, func() error { return read(i) }); err != nil {
			return err
		}
	}
	return nil
}

// Strs reads an array of strings. An empty one gives an empty, non-nil slice.
func (r *Reader) Strs() ([]string, error) {
	// Grown as the entries come, so that a claimed length buys no memory.
	out := []string{}
	err := r.Each(func(int) error {
		s, err := r.Str()
		out = append(out, s)
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// StrMap reads a map of strings to strings. A duplicate key is an error. An empty
// one gives an empty, non-nil map. Check, where not nil, judges each entry at its
// key path.
func (r *Reader) StrMap(check func(key, value string) error) (map[string]string, error) {
	n, err := r.enterMap()
	if err != nil {
		return nil, err
	}
	defer r.leave()
	out := map[string]string{}
	for range n {
		key, err := r.Str()
		if err != nil {
			return nil, err
		}
		err = r.at(segment{key: key, index: -1}, func() error { return r.entry(out, key, check) })
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (r *Reader) entry(out map[string]string, key string, check func(key, value string) error) error {
	if _, dup := out[key]; dup {
		return r.Fail("duplicate key")
	}
	value, err := r.Str()
	if err != nil {
		return err
	}
	out[key] = value
	if check == nil {
		return nil
	}
	return check(key, value)
}

// at runs read one step deeper in the key path.
func (r *Reader) at(s segment, read func() error) error {
	r.path = append(r.path, s)
	err := read()
	if _, ours := err.(*Error); err != nil && !ours {
		err = r.Fail("%v", err)
	}
	r.path = r.path[:len(r.path)-1]
	return err
}

func (r *Reader) enterMap() (int, error) {
	n, err := r.Map()
	if err != nil {
		return 0, err
	}
	return n, r.enter()
}

func (r *Reader) enterArray() (int, error) {
	n, err := r.Array()
	if err != nil {
		return 0, err
	}
	return n, r.enter()
}

func (r *Reader) enter() error {
	if r.depth >= MaxDepth {
		return r.Fail("found nesting deeper than %d", MaxDepth)
	}
	r.depth++
	return nil
}

func (r *Reader) leave() { r.depth-- }
