package cgroup

import (
	"testing"

	"pgregory.net/rapid"
)

func TestNamesOfOthersAreNotOurs(t *testing.T) {
	for _, s := range []string{
		"", "exec", "exec-", "exec--", "exec-1", "exec-1-", "exec--1", "exec-1-2-3", "exec-1-0", "exec-01-2", "exec-1-02",
		"exec-+1-2", "exec-1-+2", "exec-1--2", "exec- 1-2", "exec-1-2 ", "Exec-1-2", "xexec-1-2", "exec-1-2.bak", "exec-a-2",
		"exec-1-2\n", "exec-18446744073709551616-1", "exec-1-2147483648", "exec-1_0-2", "exec-0x1-2", "exec-1-2/..",
	} {
		if isName(s) {
			t.Errorf("%q was taken for one of ours", s)
		}
	}
}

func TestOwnNamesAreRecognised(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := name(rapid.Uint64().Draw(t, "id"), int(rapid.Int32Min(1).Draw(t, "pid")))
		if !isName(n) {
			t.Fatalf("%q was not recognised", n)
		}
	})
}
