//go:build !linux

package roots

// IsPlaceholder is never true: Seatbelt denies names and needs no placeholder.
func IsPlaceholder(string) bool { return false }
