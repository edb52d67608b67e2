package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"sandboxd/internal/policy"
	"sandboxd/protocol"
)

// policyCommand is `sandboxd policy`: it prints a ready policy, and on stderr what
// was left out of it and why.
func policyCommand(args []string, s System) int {
	o, format, err := parsePolicy(args)
	if err != nil {
		return complain(s, exitUsage, err)
	}
	workspace, cwd, err := place(o, s)
	if err != nil {
		return complain(s, exitFailed, err)
	}
	p, err := build(o, workspace, cwd, s.Environ)
	if err == nil {
		err = policy.Validate(p.policy)
	}
	if err != nil {
		return complain(s, exitFailed, err)
	}
	for _, note := range p.notes {
		complain(s, 0, errors.New(note))
	}
	if format == "msgpack" {
		_, err = s.Stdout.Write(p.policy.Append(nil))
	} else {
		err = printPolicy(s.Stdout, p.policy)
	}
	if err != nil {
		return complain(s, exitFailed, fmt.Errorf("cannot print the policy: %w", err))
	}
	return 0
}

func parsePolicy(args []string) (o options, format string, err error) {
	const usage = "type `sandboxd policy workspace|fence [flags] [--format json|msgpack]`"
	o, format = defaults(), "json"
	if len(args) == 0 || setPreset(&o, args[0]) != nil {
		return o, "", errors.New("expected the name of a preset; " + usage)
	}
	for args = args[1:]; len(args) > 0; {
		switch {
		case args[0] == "--format" && len(args) > 1:
			format, args = args[1], args[2:]
		case args[0] == "--format=json" || args[0] == "--format=msgpack":
			format, args = args[0][len("--format="):], args[1:]
		case args[0] == "" || args[0][0] != '-':
			return o, "", fmt.Errorf("%q is no flag; %s", args[0], usage)
		default:
			if args, err = parseFlag(&o, args[0], args[1:]); err != nil {
				return o, "", err
			}
		}
	}
	if format != "json" && format != "msgpack" {
		return o, "", fmt.Errorf("--format %s: expected json or msgpack", format)
	}
	return o, format, nil
}

// document is a policy with the keys of the wire.
type document struct {
	V             uint64            `json:"v"`
	WritableRoots []string          `json:"writable_roots"`
	ReadableRoots []string          `json:"readable_roots"`
	Protected     []string          `json:"protected"`
	Mounts        []mountDocument   `json:"mounts"`
	Network       map[string]any    `json:"network"`
	Limits        map[string]uint64 `json:"limits"`
	EnvAllow      []string          `json:"env_allow"`
	Scratch       string            `json:"scratch"`
}

type mountDocument struct {
	Path     string `json:"path"`
	Access   string `json:"access"`
	Required bool   `json:"required"`
}

func printPolicy(w io.Writer, p protocol.Policy) error {
	d := document{
		V: protocol.PolicyVersion, WritableRoots: list0(p.WritableRoots), ReadableRoots: list0(p.ReadableRoots),
		Protected: list0(p.Protected), Mounts: []mountDocument{}, Network: map[string]any{"mode": p.Network.Mode},
		Limits: map[string]uint64{
			"cpu_s": p.Limits.CPUSeconds, "wall_s": p.Limits.WallSeconds, "mem_bytes": p.Limits.MemBytes,
			"pids": p.Limits.Pids, "fsize_bytes": p.Limits.FsizeBytes, "output_bytes": p.Limits.OutputBytes,
		},
		EnvAllow: list0(p.EnvAllow), Scratch: p.Scratch,
	}
	for _, m := range p.Mounts {
		d.Mounts = append(d.Mounts, mountDocument{m.Path, string(m.Access), m.Required})
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(d)
}

// list0 is never null: every key of a policy is required.
func list0(l []string) []string { return append([]string{}, l...) }
