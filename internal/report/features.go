package report

import (
	"slices"

	"sandboxd/internal/host"
	"sandboxd/protocol"
)

// Features gives hello.features for a host, in a fixed order. more names what was
// found outside the facts: TagCgroupV2 for a usable base, TagSeatbelt for a probe
// that succeeded. A bubblewrap of which it is not known whether it works is no
// feature, and no reason for "degraded" either.
func Features(f host.Facts, more ...string) []string {
	var out []string
	add := func(is bool, name string) {
		if is {
			out = append(out, name)
		}
	}
	linux, darwin := f.OS == "linux", f.OS == "darwin"
	add(linux || darwin, protocol.FeatureRlimits)
	add(linux || darwin, protocol.FeaturePgroup)
	add(linux && f.Bwrap.State == host.Works, protocol.TagBwrap)
	add(linux && f.LandlockABI > 0, protocol.TagLandlock)
	add(linux && f.Seccomp, protocol.FeatureSeccomp)
	add(linux && slices.Contains(more, protocol.TagCgroupV2), protocol.TagCgroupV2)
	add(darwin && slices.Contains(more, protocol.TagSeatbelt), protocol.TagSeatbelt)
	add(Degraded(f, more...), protocol.FeatureDegraded)
	add(!Supported(f.OS), protocol.FeaturePlatformUnsupported)
	return out
}

// Degraded says whether executions on this host have no jail: an established absence
// of bubblewrap on Linux, no Seatbelt on macOS, or a system without a jail here. A
// missing Landlock or cgroup is a skip only.
func Degraded(f host.Facts, more ...string) bool {
	switch f.OS {
	case "linux":
		return f.Bwrap.State == host.Absent
	case "darwin":
		return !slices.Contains(more, protocol.TagSeatbelt)
	}
	return true
}

// Supported is the support table: the systems (GOOS) that this program has a jail for.
func Supported(goos string) bool { return goos == "linux" || goos == "darwin" }
