// Package doctor judges what a host offers to a jail, layer by layer, and says what a
// person can do about what is missing. It is pure: the facts come from outside.
//
// It proves nothing about enforcement, which is what the self-test is for. Its advice
// adds what is missing or gives one program the right that it needs; it never tells
// anybody to switch a protection off.
package doctor

import "sandboxd/internal/host"

// Facts is what the judgement looks at.
type Facts struct {
	Host    host.Facts // bubblewrap tried out
	Release string     // of the kernel, "6.1.0-18-amd64"
	Distro  Distro
	LSM     string // the security modules that are on, as the kernel lists them; "" unknown

	Container string // what is known of a container around this process: "docker", "podman", ...; "" none
	Nested    bool   // this user namespace is not the first one
	Profile   string // AppArmor profile of this process, "" for none
	Systemd   bool   // it is the service manager here

	CgroupBase string // a usable base for ceilings, "" for none:
	NoCgroup   string // why

	Command string            // why the smallest command could not be run through a helper; "" it could, or was not tried
	Skips   map[string]string // what its report names as not in force, with the reasons

	Seatbelt   host.State // macOS
	NoSeatbelt string     // why it does not work
}

// Distro is what os-release(5) says.
type Distro struct {
	ID   string
	Like []string
	Name string // for a person
}

// State is how a layer is.
type State string

// States.
const (
	OK      State = "ok"
	Partial State = "partial" // there, with something lacking
	Missing State = "missing"
	Unsure  State = "unsure" // it could not be found out
)

// Finding is what is to be said of one layer.
type Finding struct {
	Layer  string `json:"layer"` // a tag of the protocol
	State  State  `json:"state"`
	Text   string `json:"text"`             // what there is, or why it is not
	Remedy string `json:"remedy,omitempty"` // lines to read, and to paste
}

// Judge gives the findings in the order of a report.
func Judge(f Facts) []Finding {
	switch f.Host.OS {
	case "linux":
		return []Finding{bubblewrap(f), landlock(f), seccomp(f), cgroup(f), caller(f)}
	case "darwin":
		return []Finding{seatbelt(f), {"rlimit-address-space", Partial, "ceilings hold each process, not the whole run, and mem is not held at all", ""}}
	}
	return []Finding{{"jail", Missing, "this program has no jail for " + f.Host.OS, "Run it on Linux or macOS; on Windows, in the Linux subsystem or a virtual machine."}}
}

// Jailed says whether a command would be jailed here: the first layer is there.
func Jailed(found []Finding) bool {
	return len(found) > 0 && (found[0].State == OK || found[0].State == Partial)
}

func seatbelt(f Facts) Finding {
	out := Finding{Layer: "seatbelt", State: Missing, Text: f.NoSeatbelt}
	switch f.Seatbelt {
	case host.Works:
		return Finding{Layer: "seatbelt", State: OK, Text: "profiles can be applied"}
	case host.Unsure:
		out.State, out.Remedy = Unsure, tryAgain
	default:
		out.Remedy = "Start sandboxd from a program that is in no sandbox itself: a terminal, launchd, ssh."
	}
	return out
}
