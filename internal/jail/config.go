package jail

import "sandboxd/internal/host"

// Config is what the operator decided when the helper was started.
type Config struct {
	Bwrap             string   // explicit path, "" for the trusted list
	CgroupBase        string   // "" for the helper's own
	Mutable           []string // directories that other helpers' commands may write
	AllowNestedUserns bool
	RequireEnforced   bool
	AcceptSkip        []string
}

// Unenforced says why nothing at all could be enforced here, or "".
func unenforced(f host.Facts) string {
	if f.Bwrap.State != host.Absent || f.LandlockABI > 0 {
		return ""
	}
	return "this host has neither bubblewrap (" + f.Bwrap.Reason + ") nor Landlock (" + f.LandlockReason + ")"
}
