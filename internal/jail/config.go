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
	OnMaskLoss        MaskLoss
	NoStandby         bool // build no jail before its command is known
}

// Unenforced says why nothing at all could be enforced here, or "".
func unenforced(f host.Facts) string {
	if f.Bwrap.State != host.Absent || f.LandlockABI > 0 {
		return ""
	}
	return "this host has neither bubblewrap (" + f.Bwrap.Reason + ") nor Landlock (" + f.LandlockReason + ")"
}

// MaskLoss is what happens when a protected path loses its mask while a command
// runs.
type MaskLoss uint8

// What to do about a lost mask.
const (
	MaskLossStop   MaskLoss = iota // stop the command by the ladder
	MaskLossReport                 // let it run on and report
)
