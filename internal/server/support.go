package server

import (
	"fmt"

	"sandboxd/internal/report"
)

// supported says why there is nothing to serve on a system (as GOOS), before anything
// of it is asked for. The operator may have accepted that nothing is enforced.
func supported(goos string, allowUnenforced bool) error {
	if report.Supported(goos) || allowUnenforced {
		return nil
	}
	return fmt.Errorf("cannot serve: this program has no jail for %q; run it on Linux or macOS (on Windows in the Linux subsystem or a virtual machine)", goos)
}
