// Package eval answers what a Seatbelt profile would allow, for tests on systems
// that are no Mac. It reads the part of the profile language that package seatbelt
// writes, and fails on everything else: it is no substitute for the kernel, whose
// own view of a path (links resolved, letter case of the volume) it does not have.
package eval
