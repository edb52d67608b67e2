// Package mpack reads msgpack strictly and writes it canonically: the only door
// through which bytes of a peer become values.
//
// A Reader pulls one value at a time over an input that is whole in memory. Every
// claimed length is compared with the bytes that remain before it is used, and a
// value of another type than the one asked for is an error: nil for a string,
// bin for str, float for int, an integer out of range, an extension. The reading
// primitives are those of github.com/vmihailenco/msgpack/v5; its reflective
// decoding is not used, because in v5.4.1 its allocation limit has no effect,
// integers wrap, nil and duplicate keys pass, and deep nesting overflows the stack.
//
// It does not protect against a caller that holds on to aliased bytes after the
// input was reused (Bin and Raw alias it), it does not look for duplicate keys
// inside a value read with Raw, and it judges no meaning: whether a path is
// absolute or a number sensible is the caller's business.
package mpack

const (
	// MaxDepth is how deep arrays and maps may nest, the outermost being 1.
	MaxDepth = 16
	// MaxEntries is how many entries one array or map may have that is read into
	// memory. It is more than execve(2) takes as arguments under the default
	// stack limit, and keeps 16 MiB of empty strings from becoming 256 MiB.
	MaxEntries = 1 << 18
)
