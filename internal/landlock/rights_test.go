package landlock

import (
	"testing"

	library "github.com/landlock-lsm/go-landlock/landlock"

	"sandboxd/internal/stage2/spec"
)

// The table of rights is the one that go-landlock has.
func TestRightsAreTheLibrarys(t *testing.T) {
	table := []library.Config{{}, library.V1, library.V2, library.V3, library.V4, library.V5,
		library.V6, library.V7, library.V8, library.V9, library.V10, library.V11}
	if len(table) != MaxABI+1 {
		t.Fatalf("the library's table ends with %d, ours with %d", len(table)-1, MaxABI)
	}
	for abi, want := range table {
		got := handledBy(abi)
		if got.fs != fsRights(want.HandledAccessFS) || got.net != uint64(want.HandledAccessNet) || got.scope != uint64(want.Scoped) {
			t.Errorf("ABI %d: got %+v, the library has %v", abi, got, want)
		}
	}
}

func TestRightsByTypeAndABI(t *testing.T) {
	const all, none = fsRights(1<<17 - 1), fsRights(0)
	for _, tt := range []struct {
		access    spec.Access
		abi       int
		dir       bool
		has, lack fsRights
	}{
		{spec.AccessRead, 7, true, execute | readFile | readDir, all &^ (execute | readFile | readDir)},
		{spec.AccessRead, 7, false, execute | readFile, readDir},
		{spec.AccessRead, 9, true, execute, resolveUnix},
		{spec.AccessConnect, 9, false, execute | readFile | resolveUnix, writeFile | readDir},
		{spec.AccessConnect, 8, false, execute | readFile, resolveUnix},
		{spec.AccessWrite, 1, true, makeReg | removeDir | writeFile, refer | truncate},
		{spec.AccessWrite, 2, true, refer, truncate},
		{spec.AccessWrite, 3, true, refer | truncate | makeSock | makeFifo | makeSym, ioctlDev},
		{spec.AccessWrite, 11, true, refer | resolveUnix, makeChar | makeBlock | ioctlDev},
		{spec.AccessWrite, 11, false, writeFile | truncate | execute, refer | readDir | makeReg | removeFile},
		{spec.AccessDevice, 4, false, readFile | writeFile, ioctlDev | execute},
		{spec.AccessDevice, 5, false, readFile | writeFile | ioctlDev, execute | readDir},
		{spec.AccessDevice, 5, true, readFile | writeFile | ioctlDev | readDir, execute | makeReg | makeChar},
		{spec.Access(99), 7, true, none, all},
	} {
		got := grantable(accessRights(tt.access), tt.abi, tt.dir)
		if got&tt.has != tt.has || got&tt.lack != 0 {
			t.Errorf("access %d, ABI %d, directory %v: %v", tt.access, tt.abi, tt.dir, got)
		}
		if got&^handledBy(tt.abi).fs != 0 {
			t.Errorf("access %d: ABI %d does not handle %v", tt.access, tt.abi, got)
		}
	}
}

func TestLackingIsNamed(t *testing.T) {
	for abi, want := range map[int]string{
		1:  "refer (ABI 2), truncate (ABI 3), ioctl_dev (ABI 5), resolve_unix (ABI 9)",
		2:  "truncate (ABI 3), ioctl_dev (ABI 5), resolve_unix (ABI 9)",
		7:  "resolve_unix (ABI 9)",
		11: "",
	} {
		if got := lacking(abi); got != want {
			t.Errorf("ABI %d: %q", abi, got)
		}
	}
}

func TestSkips(t *testing.T) {
	tags := func(s spec.Landlock, abi int) (list []string) {
		for _, skip := range skips(s, abi) {
			list = append(list, skip.Tag)
		}
		return list
	}
	full := spec.Landlock{DenyNet: true, Scope: true, NameLacking: true}
	for abi, want := range map[int]int{1: 3, 3: 3, 4: 2, 5: 2, 6: 1, 8: 1, 9: 0, 11: 0} {
		if got := tags(full, abi); len(got) != want {
			t.Errorf("ABI %d: %v", abi, got)
		}
	}
	if got := tags(spec.Landlock{}, 1); got != nil {
		t.Errorf("what nobody asked for is mentioned: %v", got)
	}
}
