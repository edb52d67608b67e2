package jail

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// inherited is what a jail takes from the helper as that is when the jail is started, and
// what somebody outside can change meanwhile: a standby that was started before is not
// what would be built now.
func inherited(b []byte) []byte {
	for resource := unix.RLIMIT_CPU; resource <= unix.RLIMIT_RTTIME; resource++ {
		var now unix.Rlimit
		_ = unix.Prlimit(0, resource, nil, &now)
		b = fmt.Appendf(b, "%d %d\n", now.Cur, now.Max)
	}
	for _, path := range []string{"/proc/self/cgroup", "/proc/self/oom_score_adj", "/proc/sys/kernel/core_pattern"} {
		text, _ := slurpAll(path) // what cannot be read does not change
		b = append(append(b, text...), 0)
	}
	return b
}
