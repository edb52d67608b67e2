package protocol

import "slices"

// demand is one row of what a policy demands of the kernel.
type demand struct {
	tag      string
	platform string // "linux" or "darwin"
	when     string // for PROTOCOL.md; "" is always
	holds    func(p Policy, has func(tag string) bool) bool
}

func withoutNet(p Policy, _ func(string) bool) bool { return p.Network.Mode != NetFull }
func cpuAsked(p Policy, _ func(string) bool) bool   { return p.Limits.CPUSeconds > 0 }
func fsizeAsked(p Policy, _ func(string) bool) bool { return p.Limits.FsizeBytes > 0 }
func memAsked(p Policy, _ func(string) bool) bool   { return p.Limits.MemBytes > 0 }
func pidsAsked(p Policy, _ func(string) bool) bool  { return p.Limits.Pids > 0 }

// groupAsked is for the two ceilings that one cgroup holds.
func groupAsked(p Policy, _ func(string) bool) bool {
	return p.Limits.MemBytes > 0 || p.Limits.Pids > 0
}
func landlockThere(_ Policy, has func(string) bool) bool {
	return has != nil && has(TagLandlock)
}

// demands is in the order in which Required gives the tags. wall_s and output_bytes
// have no row: the helper itself holds them.
var demands = [...]demand{
	{TagBwrap, "linux", "", nil},
	{TagMounts, "linux", "", nil},
	{TagRoots, "linux", "", nil},
	{TagNoNewPrivs, "linux", "", nil},
	{TagSeccompHardening, "linux", "", nil},
	{TagLandlock, "linux", "the kernel has it (`landlock` in hello.features)", landlockThere},
	{TagSeccompNet, "linux", "`network.mode` is not `full`", withoutNet},
	{TagRlimitCPU, "linux", "`cpu_s` is not 0", cpuAsked},
	{TagRlimitFsize, "linux", "`fsize_bytes` is not 0", fsizeAsked},
	{TagCgroupV2, "linux", "`mem_bytes` or `pids` is not 0", groupAsked},

	{TagSeatbelt, "darwin", "", nil},
	{TagSeatbeltFs, "darwin", "", nil},
	{TagRoots, "darwin", "", nil},
	// Never in force: a broker that demands everything has to accept this one by name.
	{TagDarwinProcessLifecycle, "darwin", "", nil},
	{TagSeatbeltNet, "darwin", "`network.mode` is not `full`", withoutNet},
	{TagRlimitCPU, "darwin", "`cpu_s` is not 0", cpuAsked},
	{TagRlimitFsize, "darwin", "`fsize_bytes` is not 0", fsizeAsked},
	{TagRlimitAddressSpace, "darwin", "`mem_bytes` is not 0", memAsked},
	{TagRlimitProcesses, "darwin", "`pids` is not 0", pidsAsked},
}

// Required gives the layers that the policy demands on a platform ("linux" or
// "darwin", as GOOS). has says what the host offers, in the words of
// hello.features; nil is a host that offers nothing optional. On another platform
// nothing can be in force, and Required gives TagJail, which never is.
func Required(p Policy, platform string, has func(tag string) bool) []string {
	var tags []string
	for _, d := range demands {
		if d.platform == platform && (d.holds == nil || d.holds(p, has)) {
			tags = append(tags, d.tag)
		}
	}
	if tags == nil {
		tags = []string{TagJail}
	}
	return tags
}

// Missing gives the required layers that an enforcement list does not hold, or
// holds as skipped (also where it holds them as applied as well), except those that
// accept names. The order is that of required; nil means that all are in force.
func Missing(required, enforcement, accept []string) []string {
	applied, skipped := map[string]bool{}, map[string]bool{}
	for _, entry := range enforcement {
		tag, skip := Layer(entry)
		if skip {
			skipped[tag] = true
		} else {
			applied[tag] = true
		}
	}
	var missing []string
	for _, tag := range required {
		if (!applied[tag] || skipped[tag]) && !slices.Contains(accept, tag) {
			missing = append(missing, tag)
		}
	}
	return missing
}
