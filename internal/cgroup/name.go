package cgroup

import (
	"fmt"
	"strconv"
	"strings"
)

// name is what an execution's cgroup is called: the id of the execution and the pid
// of the helper, in canonical decimal.
func name(id uint64, pid int) string { return fmt.Sprintf("exec-%d-%d", id, pid) }

// isName reports whether s has exactly the shape that name gives. The sweep removes
// nothing else: "exec-01-2" or "exec-1-2.bak" are somebody else's.
func isName(s string) bool {
	rest, ok := strings.CutPrefix(s, "exec-")
	if !ok {
		return false
	}
	left, right, ok := strings.Cut(rest, "-")
	if !ok {
		return false
	}
	id, err1 := strconv.ParseUint(left, 10, 64)
	pid, err2 := strconv.ParseUint(right, 10, 31)
	return err1 == nil && err2 == nil && pid > 0 && s == name(id, int(pid))
}
