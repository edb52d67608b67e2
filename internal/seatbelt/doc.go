// Package seatbelt renders a plan as a profile for macOS's /usr/bin/sandbox-exec. It
// is pure: the same plan and options give the same text and parameters on any
// machine, and it has no build tags, so it is tested where there is no Mac.
//
// A profile restricts what a process and its descendants can ask of the kernel by
// path name. It does not hide names from a process (a denied path is refused, not
// absent), bounds no memory, processes or time, does not stop a process from being
// seen, and says nothing of what the services behind the granted Mach look-ups do on
// the command's behalf. POSIX shared memory and semaphores are the user's, not the
// execution's.
package seatbelt
