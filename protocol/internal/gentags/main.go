// Command gentags makes the Go constants of the enforcement vocabulary from
// tags.toml. It reads a strict subset of TOML: [[tag]] tables whose values are a
// basic string without escapes, a boolean, or an array of such strings on one line.
// It protects nothing; a test compares its output with what is committed.
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	in := flag.String("in", "tags.toml", "vocabulary to read")
	out := flag.String("out", "tags_gen.go", "Go file to write")
	flag.Parse()
	if err := run(*in, *out); err != nil {
		fmt.Fprintln(os.Stderr, "gentags:", err)
		os.Exit(1)
	}
}

func run(in, out string) error {
	src, err := os.ReadFile(in)
	if err != nil {
		return err
	}
	tags, err := parse(string(src))
	if err != nil {
		return fmt.Errorf("cannot read %s: %w", in, err)
	}
	code, err := render(tags)
	if err != nil {
		return fmt.Errorf("cannot render %s: %w", out, err)
	}
	return os.WriteFile(out, code, 0o644)
}
