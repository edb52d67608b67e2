//go:build !linux

package leash

// Role is the argument that makes this program that process, on Linux.
const Role = "--leash"

// Main has nothing to do: only bubblewrap leaves something that waits.
func Main() int { return 2 }
