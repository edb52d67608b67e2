package fence

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A workspace that is, or lies in, what a shell of the user's runs is not guarded as such,
// which is said; around it the list is guarded, and nothing is said of what was opened by
// name.
func TestWorkspaceThatIsRun(t *testing.T) {
	top := place(t)
	dirs(t, top, "home/.config/fish/functions", "home/.ssh")
	fish := filepath.Join(top, "home/.config/fish")
	guarded := func(r Result) bool {
		return slices.ContainsFunc(r.Guards, func(g Guard) bool { return g.Path == fish })
	}
	for _, tc := range []struct {
		ws      string
		open    string
		guarded bool
		said    string
	}{
		{"home/.config", "", true, ""},
		{"home/.config", "home/.config/fish", false, ""},
		{"home/.config/fish", "", false, "home/.config/fish"},
		{"home/.config/fish/functions", "", false, "home/.config/fish/functions"},
		{"ws", "", false, ""},
		{"ws", "home/.config/fish", false, ""},
	} {
		in := input(top)
		in.Workspace = filepath.Join(top, tc.ws)
		if tc.open != "" {
			in.Open = []string{filepath.Join(top, tc.open)}
			in.Write = in.Open
		}
		r, err := Fence(in)
		if err != nil || guarded(r) != tc.guarded {
			t.Errorf("%+v: %+v, %v", tc, r.Guards, err)
		}
		notes := strings.Join(r.Notes, "\n")
		said := fmt.Sprintf("guard: the command may write all of %q, which is not guarded, and fish runs what is in it", filepath.Join(top, tc.said))
		if has := strings.Contains(notes, said); has != (tc.said != "") || tc.said == "" && strings.Contains(notes, "not guarded") {
			t.Errorf("%+v: %q", tc, r.Notes)
		}
	}
}
