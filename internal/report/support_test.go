package report

import (
	"slices"
	"strings"
	"testing"

	"sandboxd/internal/host"
	"sandboxd/protocol"
)

// The support table, for every system that Go builds for: asked anywhere.
func TestSupportTable(t *testing.T) {
	for _, goos := range []string{"linux", "darwin", "windows", "freebsd", "openbsd", "netbsd", "dragonfly", "solaris", "illumos", "aix", "plan9", "android", "ios", "js", "wasip1", ""} {
		want := goos == "linux" || goos == "darwin"
		if Supported(goos) != want {
			t.Errorf("Supported(%q) = %t", goos, !want)
		}
		f := host.Facts{OS: goos, Bwrap: host.Bwrap{State: host.Works}}
		features := Features(f, protocol.TagSeatbelt)
		if got := slices.Contains(features, protocol.FeaturePlatformUnsupported); got == want {
			t.Errorf("%s: platform-unsupported in hello: %t", goos, got)
		}
		if got := Degraded(f, protocol.TagSeatbelt); got == want {
			t.Errorf("%s: degraded: %t", goos, got)
		}
		entries := Entries(Outcome{Platform: goos})
		if got := strings.HasPrefix(entries[0], "skip:jail: "); got == want {
			t.Errorf("%s: the report begins with %q", goos, entries[0])
		}
		if want {
			continue
		}
		// Nothing can be in force there, so nothing that a policy demands is met.
		required := protocol.Required(protocol.Policy{}, goos, nil)
		if len(protocol.Missing(required, entries, nil)) == 0 {
			t.Errorf("%s: a report without a jail meets %v", goos, required)
		}
		if len(features) != 2 || !slices.Contains(features, protocol.FeatureDegraded) {
			t.Errorf("%s: features %v", goos, features)
		}
	}
}
