// Package roots reaches the paths of a policy by descriptor, without following a
// symbolic link that a confined command could have planted, and keeps what it
// reached so that the very same object is bound, granted and verified. It also
// makes and removes the placeholders that masks over missing paths need, and
// watches for mount points that vanish while a command runs.
//
// What it does not protect against: a host process of another user that writes
// directories above the roots; an earlier command of another process, unless its
// directories are named as mutable; a file system that shows one directory
// through two devices (the lower directory of an overlay, for instance). The watch tells
// of a lost mount after the fact, it prevents nothing.
package roots
