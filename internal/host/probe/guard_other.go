//go:build !linux

package probe

// Role and Main are Linux's: elsewhere there is no bubblewrap to try.
const Role = "--probe"

// Main refuses.
func Main([]string) int { return 2 }
