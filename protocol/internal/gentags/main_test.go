package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

const (
	source    = "../../tags.toml"
	generated = "../../tags_gen.go"
)

func TestCommittedConstantsAgreeWithTheVocabulary(t *testing.T) {
	src, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	tags, err := parse(string(src))
	if err != nil {
		t.Fatal(err)
	}
	if len(tags) < 20 {
		t.Fatalf("%d tags: the vocabulary is larger", len(tags))
	}
	want, err := render(tags)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(generated)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Fatal("tags_gen.go differs from tags.toml: run go generate ./protocol")
	}
}

const one = `[[tag]]
id = "a-b"
feature = true
applied = false
skip = true
platforms = ["linux", "darwin"]
meaning = "what it means"
`

func TestParse(t *testing.T) {
	tags, err := parse("# comment\n\n" + one)
	if err != nil || len(tags) != 1 {
		t.Fatalf("got %v, %v", tags, err)
	}
	got := tags[0]
	if got.ID != "a-b" || !got.Feature || got.Applied || !got.Skip || strings.Join(got.Platforms, "+") != "linux+darwin" || got.Meaning != "what it means" {
		t.Fatalf("got %+v", got)
	}
	if got.name() != "TagAB" {
		t.Fatalf("name %s", got.name())
	}
}

func TestParseRefuses(t *testing.T) {
	for name, tc := range map[string]struct{ old, new, want string }{
		"missing key":  {"skip = true\n", "", "missing key"},
		"duplicate":    {"skip = true\n", "skip = true\nskip = true\n", "duplicate key"},
		"unknown key":  {"skip = true\n", "skip = true\nskipped = true\n", "unknown"},
		"wrong type":   {`id = "a-b"`, "id = true", "expected string"},
		"wrong bool":   {"skip = true", `skip = "true"`, "expected boolean"},
		"platform":     {`"darwin"`, `"plan9"`, "unknown platform"},
		"bad id":       {"a-b", "A_b", "lower-case"},
		"no use":       {"feature = true\napplied = false\nskip = true", "feature = false\napplied = false\nskip = false", "nowhere"},
		"escape":       {"what it", `what\nit`, "line 7"},
		"outside":      {"[[tag]]\n", "", "line 1"},
		"twice the id": {one, one + one, "duplicate id"},
	} {
		src := strings.Replace(one, tc.old, tc.new, 1)
		if _, err := parse(src); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %s", name, err, tc.want)
		}
	}
}
