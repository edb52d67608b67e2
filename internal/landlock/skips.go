package landlock

import (
	"fmt"

	"sandboxd/internal/stage2/spec"
)

// skips names what was asked for and is beyond an ABI.
func skips(s spec.Landlock, abi int) []spec.Skip {
	var list []spec.Skip
	h := handledBy(abi)
	if s.DenyNet && h.net == 0 {
		list = append(list, spec.Skip{Tag: "landlock-net",
			Reason: fmt.Sprintf("this kernel has Landlock ABI %d, TCP rights came with ABI 4 (Linux 6.7)", abi)})
	}
	if s.Scope && h.scope == 0 {
		list = append(list, spec.Skip{Tag: "landlock-scope",
			Reason: fmt.Sprintf("this kernel has Landlock ABI %d, scopes came with ABI 6 (Linux 6.12)", abi)})
	}
	if names := lacking(abi); s.NameLacking && names != "" {
		list = append(list, spec.Skip{Tag: "landlock",
			Reason: fmt.Sprintf("ABI %d cannot restrict %s", abi, names)})
	}
	return list
}
