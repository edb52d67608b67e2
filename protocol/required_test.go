package protocol

import (
	"slices"
	"testing"
)

func TestRequired(t *testing.T) {
	full := Limits{CPUSeconds: 1, WallSeconds: 1, MemBytes: 1, Pids: 1, FsizeBytes: 1, OutputBytes: 1}
	landlock := func(tag string) bool { return tag == "landlock" }
	for name, tc := range map[string]struct {
		p        Policy
		platform string
		has      func(string) bool
		want     []string
	}{
		"linux, nothing asked": {
			Policy{Network: Network{Mode: NetFull}}, "linux", nil,
			[]string{"bwrap", "mounts", "roots", "no-new-privs", "seccomp-hardening"},
		},
		"linux, everything": {
			Policy{Network: Network{Mode: NetProxy}, Limits: full}, "linux", landlock,
			[]string{"bwrap", "mounts", "roots", "no-new-privs", "seccomp-hardening", "landlock", "seccomp-net", "rlimit-cpu", "rlimit-fsize", "cgroup-v2"},
		},
		"linux, pids alone": {
			Policy{Network: Network{Mode: NetOff}, Limits: Limits{Pids: 5}}, "linux", nil,
			[]string{"bwrap", "mounts", "roots", "no-new-privs", "seccomp-hardening", "seccomp-net", "cgroup-v2"},
		},
		"linux, what the helper holds itself": {
			Policy{Network: Network{Mode: NetFull}, Limits: Limits{WallSeconds: 5, OutputBytes: 5}}, "linux", nil,
			[]string{"bwrap", "mounts", "roots", "no-new-privs", "seccomp-hardening"},
		},
		"darwin, everything": {
			Policy{Network: Network{Mode: NetOff}, Limits: full}, "darwin", landlock,
			[]string{"seatbelt", "seatbelt-fs", "roots", "darwin-process-lifecycle", "seatbelt-net", "rlimit-cpu", "rlimit-fsize", "rlimit-address-space", "rlimit-processes"},
		},
		"elsewhere": {Policy{Network: Network{Mode: NetFull}}, "windows", landlock, []string{"jail"}},
	} {
		if got := Required(tc.p, tc.platform, tc.has); !slices.Equal(got, tc.want) {
			t.Errorf("%s: got %v, want %v", name, got, tc.want)
		}
	}
}

func TestMissing(t *testing.T) {
	required := []string{"bwrap", "mounts", "cgroup-v2"}
	for name, tc := range map[string]struct{ enforcement, accept, want []string }{
		"all":              {[]string{"bwrap", "mounts:ro=1,rw=2", "cgroup-v2:pids_allowance=3"}, nil, nil},
		"detail after '='": {[]string{"bwrap=1", "mounts", "cgroup-v2"}, nil, nil},
		"nothing said":     {nil, nil, required},
		"a prefix is no name": {
			[]string{"bwrapper", "mounts-too", "cgroup-v2x"}, nil, required},
		"skipped":          {[]string{"bwrap", "mounts:ro=1", "skip:cgroup-v2: no controller: memory"}, nil, []string{"cgroup-v2"}},
		"skipped, applied": {[]string{"bwrap", "mounts:ro=1", "cgroup-v2", `skip:mounts: "/a" is a link`}, nil, []string{"mounts"}},
		"accepted":         {[]string{"bwrap", "skip:cgroup-v2: none"}, []string{"cgroup-v2", "mounts"}, nil},
		"skip of another":  {[]string{"bwrap", "mounts:", "cgroup-v2", "skip:sockets: x"}, nil, nil},
	} {
		if got := Missing(required, tc.enforcement, tc.accept); !slices.Equal(got, tc.want) {
			t.Errorf("%s: got %v, want %v", name, got, tc.want)
		}
	}
}

func TestDemandsAreInTheVocabulary(t *testing.T) {
	tags := map[string]Tag{}
	for _, tag := range Tags() {
		tags[tag.ID] = tag
	}
	for _, d := range demands {
		tag, ok := tags[d.tag]
		if !ok || !slices.Contains(tag.Platforms, d.platform) || !tag.Skip {
			t.Errorf("%s is demanded on %s, and the vocabulary has %+v", d.tag, d.platform, tag)
		}
		if (d.when == "") != (d.holds == nil) {
			t.Errorf("%s: the condition has a text or a function, not both", d.tag)
		}
	}
}
