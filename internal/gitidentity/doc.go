// Package gitidentity is `sandboxd --publish-git-identity`: one fixed operation that
// writes the operator's git name and email to WORKSPACE/.sandboxd/home/gitconfig,
// for a broker whose commands have GIT_CONFIG_GLOBAL there. It runs no git, no
// shell and no mount, follows no link below the granted root and makes no directory.
//
// What it does not protect: the file is the commands' to change afterwards, and a
// broker must not use it as configuration of its own.
package gitidentity
