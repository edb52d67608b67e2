package mpack

// Raw reads one well-formed value of any type, extensions included, and gives its
// bytes, which alias the input. Strings in it are valid UTF-8, lengths fit, and
// nesting (counted from the outermost value of the input) is at most MaxDepth.
// Keys may repeat and may be of any type.
func (r *Reader) Raw() ([]byte, error) {
	start := len(r.buf) - r.Remaining()
	if err := r.skip(r.depth); err != nil {
		return nil, err
	}
	end := len(r.buf) - r.Remaining()
	return r.buf[start:end:end], nil
}

// RawMap is Raw for a value that must be a map.
func (r *Reader) RawMap() ([]byte, error) {
	if _, err := r.expect(famMap, "map"); err != nil {
		return nil, err
	}
	return r.Raw()
}

// skip recurses at most MaxDepth deep.
func (r *Reader) skip(depth int) error {
	c, err := r.dec.PeekCode()
	if err != nil {
		return r.Fail("found end of input, expected a value")
	}
	switch f := familyOf(c); f {
	case famMap:
		return r.skipEntries(c, 2, depth)
	case famArray:
		return r.skipEntries(c, 1, depth)
	case famStr:
		_, err := r.text()
		return err
	case famBin:
		_, err := r.bytes(string(f))
		return err
	case famExt:
		return r.skipExt()
	case famInvalid:
		return r.Fail("found %s, expected a value", f)
	default:
		_, err := r.take(scalarSize(c), string(f))
		return err
	}
}

// skipEntries skips a container whose entries are size values each.
func (r *Reader) skipEntries(c byte, size, depth int) error {
	if depth >= MaxDepth {
		return r.Fail("found nesting deeper than %d", MaxDepth)
	}
	n, err := r.rawCount(c, size)
	if err != nil {
		return err
	}
	for range n * size {
		if err := r.skip(depth + 1); err != nil {
			return err
		}
	}
	return nil
}

func (r *Reader) skipExt() error {
	_, n, err := r.dec.DecodeExtHeader()
	if err != nil {
		return r.cut(err)
	}
	_, err = r.take(n, "extension")
	return err
}

// scalarSize is the whole size of a nil, boolean, integer or float.
func scalarSize(c byte) int {
	switch c {
	case 0xcc, 0xd0: // uint8, int8
		return 2
	case 0xcd, 0xd1: // uint16, int16
		return 3
	case 0xce, 0xd2, 0xca: // uint32, int32, float32
		return 5
	case 0xcf, 0xd3, 0xcb: // uint64, int64, float64
		return 9
	}
	return 1
}
