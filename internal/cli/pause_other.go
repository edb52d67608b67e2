//go:build unix && !linux

package cli

import "golang.org/x/sys/unix"

// child has no use here: without pidfds nobody can be signalled for sure, so the
// command runs on while run is stopped, until its output is no longer taken.
type child struct{}

func signalJail(unix.Signal, map[child]bool) map[child]bool { return nil }

func stopSelf() { unix.Kill(unix.Getpid(), unix.SIGSTOP) }

func orphaned() bool { return unix.Getppid() <= 1 }
