// Package landlock turns a plan into Landlock rules (a value) and, on Linux, the
// rules into one ruleset that stage 2 enforces on the thread that becomes the
// command.
//
// Landlock has no deny rules and its grants unite. Inside bubblewrap's jail the
// mounts decide what is seen, and the rules are strictly weaker: the whole view may
// be read and executed, the writable places written. Three things are Landlock's
// own: without bubblewrap it is the only file-system layer; its TCP (UDP from ABI
// 10) and scope rights; and a command in a Landlock domain can neither trace
// bubblewrap's init nor take its descriptors or read its memory.
//
// What it does not protect:
//
//   - stat, chdir, chmod, chown, utime, setxattr, readlink, flock and access are
//     not restricted by any ABI.
//   - It never sees protected paths: a grant cannot have a hole.
//   - A read-only place inside a writable one is writable as far as Landlock goes.
//   - Descriptors that were open before are not restricted.
//   - Multipath TCP is not restricted by the TCP rights, and UDP only from ABI 10;
//     the net filter of package seccomp is what closes the network.
//   - ABI 1 refuses every rename and link across directories (EXDEV).
//   - mount, umount and pivot_root are refused in every domain, also inside a user
//     namespace that the command makes itself.
package landlock
