package probe

import (
	"net"
	"os"
	"path/filepath"
	"testing"
)

func TestServices(t *testing.T) {
	at := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", at)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := os.WriteFile(at+".file", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for value, want := range map[string]string{
		at: at, "unix:" + at: at, "unix://" + at: at, "unix:path=" + at + ",guid=12": at, at + ",123,0": at, "unix:abstract=/x,guid=1": "",
		"unix:abstract=/x,guid=1;unix:path=" + at: at, "unix:guid=12,path=" + at: at, "tcp:host=x,port=1;unix:path=" + at + ",guid=1;autolaunch:": at,
		at + ".gone": at + ".gone", // one that is started again
		at + ".file": "", filepath.Dir(at): "", at + ":" + at: "", "s": "", "": "", at + "/../s": "", "tcp:host=/x": "",
	} {
		got := services([]string{"NAME=" + value, "OTHER"})
		if len(got) > 1 || len(got) == 1 && (got[0].Path != want || got[0].Variable != "NAME") || len(got) == 0 && want != "" {
			t.Errorf("%q: %v, want %q", value, got, want)
		}
	}
}
