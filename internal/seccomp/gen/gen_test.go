package main

import (
	"bytes"
	"os"
	"reflect"
	"runtime"
	"testing"
)

// The tables that production links are what the rules say today.
func TestTablesAreFresh(t *testing.T) {
	for _, target := range targets {
		want, err := render(target)
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile("../" + fileName(target))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s is stale: run go generate ./internal/seccomp", fileName(target))
		}
	}
}

// The code path that serves foreign architectures gives, for this one, exactly
// what the library's own Policy.Assemble gives.
func TestSameAsLibrary(t *testing.T) {
	compared := 0
	for _, target := range targets {
		if target.goarch != runtime.GOARCH {
			continue
		}
		for _, p := range policies() {
			want, err := p.policy.Assemble()
			if err != nil {
				t.Fatal(err)
			}
			got, err := assemble(target, p.policy)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%s: got\n%v\nthe library says\n%v", p.name, got, want)
			}
			compared++
		}
	}
	if compared == 0 {
		t.Fatalf("nothing was compared: no target is %s", runtime.GOARCH)
	}
}

func TestUnknownCallIsAnError(t *testing.T) {
	p := hardeningPolicy("no_such_call")
	if _, err := assemble(targets[0], p); err == nil {
		t.Fatal("a name without a number was dropped silently")
	}
}
