// Package e2e holds the tests that drive the real binary from outside, as a
// broker would: frames in, frames out, on the real kernel with the real
// bubblewrap, as root and as an ordinary user. It has no production code.
package e2e
