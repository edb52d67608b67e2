package server

import (
	"strings"
	"testing"
)

// Where there is no jail nothing is served, unless the operator has accepted that.
func TestSupported(t *testing.T) {
	for goos, want := range map[string]bool{"linux": true, "darwin": true, "windows": false, "freebsd": false, "plan9": false, "": false} {
		err := supported(goos, false)
		if (err == nil) != want {
			t.Errorf("%q: %v", goos, err)
		}
		if err != nil && (!strings.Contains(err.Error(), "no jail for \""+goos+"\"") || !strings.Contains(err.Error(), "run it on")) {
			t.Errorf("%q: %v does not say what to do", goos, err)
		}
		if err := supported(goos, true); err != nil {
			t.Errorf("%q, accepted: %v", goos, err)
		}
	}
}
