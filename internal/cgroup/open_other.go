//go:build !linux

package cgroup

// Base is never there on this system: cgroups are Linux's.
type Base struct{}

// Open says that there is no base on this system.
func Open(flag, env string) (*Base, string) { return nil, "cgroups exist on Linux only" }
