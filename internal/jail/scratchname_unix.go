//go:build linux || darwin

package jail

import "strings"

// The names of a private scratch and of what lies beside it, with the digits that
// os.CreateTemp chooses: PREFIX DIGITS, PREFIX DIGITS ".witness", PREFIX DIGITS "-" DIGITS
// ".sb" or ".spec". Any command may make files beside them, so a name is never a pattern.
const (
	scratchPrefix = "sandboxd-scratch-"
	witnessSuffix = ".witness"
	profileSuffix = ".sb"
	specSuffix    = ".spec"
)

// scratchOf gives the name of the scratch that a witness of this name is for.
func scratchOf(witness string) (scratch string, ok bool) {
	scratch, ok = strings.CutSuffix(witness, witnessSuffix)
	id, mine := strings.CutPrefix(scratch, scratchPrefix)
	return scratch, ok && mine && digits(id)
}

// liesBeside says whether a name is that of a file which belongs to a scratch.
func liesBeside(name, scratch string) bool {
	id, ok := strings.CutPrefix(name, scratch+"-")
	for _, suffix := range []string{profileSuffix, specSuffix} {
		if rest, found := strings.CutSuffix(id, suffix); found {
			return ok && digits(rest)
		}
	}
	return false
}

// digits says whether os.CreateTemp can have chosen s.
func digits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}
