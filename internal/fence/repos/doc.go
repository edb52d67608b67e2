// Package repos finds what git takes for a repository below a directory, and says
// what a command did there that no mount could keep it from: a new repository, one
// whose HEAD is gone, a rebase whose list runs commands. It runs no git, and every file
// that it reads may have been written by a command. It searches through no link, and
// reads no file that is one; where git follows a link to a directory, as in place of
// ".git/worktrees", it does. What it could not look at it names.
//
// What it does not protect: it looks before and after, and prevents nothing. A
// repository that was there keeps its settings by the guard's mounts, not by this.
package repos
