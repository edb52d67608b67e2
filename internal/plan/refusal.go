package plan

import (
	"fmt"
	"strconv"
)

// Error names the list, the path, the cause and what to change, in one line.
func (r *Refusal) Error() string {
	if r.List == "" {
		return fmt.Sprintf("cannot honour %q: %s", r.Path, r.Reason)
	}
	return fmt.Sprintf("cannot honour %s %q: %s", r.List, r.Path, r.Reason)
}

// name is an origin's place in the policy: "mounts[2]", "scratch".
func (o Origin) name() string {
	if o.Index < 0 {
		return o.List
	}
	return o.List + "[" + strconv.Itoa(o.Index) + "]"
}

// both shows a spelling and, where it differs, what it leads to.
func both(spelled, path string) string {
	if spelled == path {
		return strconv.Quote(spelled)
	}
	return fmt.Sprintf("%q (which is %q)", spelled, path)
}

// refuse makes a refusal for one path of the policy.
func refuse(o Origin, format string, args ...any) *Refusal {
	return &Refusal{List: o.name(), Path: o.Path, Reason: fmt.Sprintf(format, args...)}
}
