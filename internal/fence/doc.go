// Package fence makes the policies of the two presets: "fence", which bounds only
// what a command writes, and "workspace", the strict jail. It knows where tools
// keep their caches, reaches each of them without following a link that an
// earlier command could have planted, finds the repository's real git directories
// after verifying their back-pointers, and lists what executes with the user's own
// authority later and is therefore guarded.
//
// What it does not protect: a cache that is granted can be poisoned for the next
// build that reads it; what a repository that the command itself made holds, which
// is only said (package repos), as is a rebase whose list runs commands; what is only
// read (a Makefile, a source file, a package manager's settings, what a hook of the
// repository calls) and run by the user later; repositories of other systems than git,
// and a user's others that lie in /tmp; services of the user that the network reaches.
// It enforces nothing: the helper reaches every path again.
package fence
