package landlock

import "sandboxd/internal/stage2/spec"

type device struct {
	path   string
	access spec.Access
}

// jailDevices are what shells, openpty and Python's semaphores need of bubblewrap's
// private /dev. Never /dev as a tree: a later node would be granted with it.
var jailDevices = append([]device{
	{"/dev/tty", spec.AccessDevice},
	{"/dev/ptmx", spec.AccessDevice},
	{"/dev/pts", spec.AccessDevice},
	{"/dev/shm", spec.AccessWrite},
}, degradedDevices...)

// degradedDevices are the stateless ones of the host's own /dev. Its terminals and
// /dev/shm belong to the account's other programs.
var degradedDevices = []device{
	{"/dev/null", spec.AccessDevice},
	{"/dev/zero", spec.AccessDevice},
	{"/dev/full", spec.AccessDevice},
	{"/dev/random", spec.AccessDevice},
	{"/dev/urandom", spec.AccessDevice},
}

// degradedProc is what language runtimes read of the host's /proc at start. The
// tree is not granted: it shows every process's command line. Walking through it
// and reading its links is not restricted by Landlock, so /proc/self/exe and
// /dev/fd work without a grant.
var degradedProc = []string{
	"/proc/cpuinfo", "/proc/filesystems", "/proc/loadavg", "/proc/meminfo",
	"/proc/stat", "/proc/uptime", "/proc/version",
	"/proc/sys/kernel/osrelease", "/proc/sys/vm/overcommit_memory",
	"/proc/sys/vm/max_map_count", "/proc/sys/fs/pipe-max-size",
	selfProc,
}

// selfProc stands for the directory of the process that becomes the command:
// /proc/self is a link, and rules follow none. The command's children have
// directories of their own, which are not granted.
const selfProc = "/proc/self"

// usernsFiles are written by a process that makes a user namespace for itself
// (user_namespaces(7)).
var usernsFiles = []string{"uid_map", "gid_map", "setgroups"}
