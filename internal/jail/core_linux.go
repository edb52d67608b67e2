package jail

import "golang.org/x/sys/unix"

// allowCoreLimit lifts a hard limit of 0 for core files to the 1 that stage 2 sets, at
// which a crash starts no handler of the host's core_pattern: at 0 it would. Who has no
// right to keeps it, and each report says so.
func allowCoreLimit() {
	var now unix.Rlimit
	if unix.Prlimit(0, unix.RLIMIT_CORE, nil, &now) == nil && now.Max == 0 {
		now.Max = 1
		_ = unix.Prlimit(0, unix.RLIMIT_CORE, &now, nil)
	}
}
