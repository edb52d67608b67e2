package broker

import (
	"runtime"

	"sandboxd/protocol"
)

// checkBefore refuses, with Demand Full, a helper whose hello already says that it
// has no jail: the report would come after the command had run without one.
func (h *Helper) checkBefore() error {
	if h.opts.Demand != Full {
		return nil
	}
	for _, f := range []string{protocol.FeatureDegraded, protocol.FeaturePlatformUnsupported} {
		if h.Has(f) {
			return &NotEnforcedError{Missing: []string{"the helper's hello says " + f}}
		}
	}
	return nil
}

// checkAfter holds the report against what the policy demands.
func (h *Helper) checkAfter(p protocol.Policy, r Result) error {
	if h.opts.Demand != Full {
		return nil
	}
	required := protocol.Required(p, runtime.GOOS, h.Has)
	missing := protocol.Missing(required, r.Enforcement, h.opts.Accept)
	if len(missing) == 0 && r.Degraded {
		missing = []string{"the report says degraded"}
	}
	if len(missing) == 0 {
		return nil
	}
	return &NotEnforcedError{Missing: missing, Ran: true}
}
