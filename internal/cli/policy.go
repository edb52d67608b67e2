package cli

import (
	"errors"
	"fmt"
	"io"

	"sandboxd/protocol"
)

// policyCommand is `sandboxd policy`: it prints a ready policy, and on stderr what
// was left out of it and why.
func policyCommand(args []string, s System) int {
	o, err := parsePolicy(args)
	if err != nil {
		return reject(s, "policy", err)
	}
	t, err := newTask(o, s)
	if err != nil {
		return complain(s, exitFailed, err)
	}
	for _, note := range t.notes {
		complain(s, 0, errors.New(note))
	}
	if o.format == "msgpack" {
		_, err = s.Stdout.Write(t.policy.Append(nil))
	} else {
		err = printPolicy(s.Stdout, t.policy)
	}
	if err != nil {
		return complain(s, exitFailed, fmt.Errorf("cannot print the policy: %w", err))
	}
	return 0
}

func parsePolicy(args []string) (options, error) {
	const usage = "type `sandboxd policy workspace|fence [flags]`, or `sandboxd policy --policy FILE`"
	p := parser{command: "policy", use: forPolicy, o: defaults()}
	rest, err := p.anywhere(args)
	if err != nil {
		return options{}, err
	}
	switch {
	case len(rest) > 1:
		return options{}, fmt.Errorf("unknown argument %q; %s", rest[1], usage)
	case len(rest) == 1 && p.o.given["preset"]:
		return options{}, fmt.Errorf("two presets: %s and --preset %s", rest[0], p.o.preset)
	case len(rest) == 1:
		if setPreset(&p.o, rest[0]) != nil {
			return options{}, fmt.Errorf("there is no preset %q; %s", rest[0], usage)
		}
		p.o.given["preset"] = true
	case p.o.policyFile == "" && !p.o.given["preset"]:
		return options{}, errors.New("which policy? " + usage)
	}
	return p.o, p.o.contradiction()
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

func printPolicy(w io.Writer, p protocol.Policy) error { return printJSON(w, newDocument(p)) }

func newDocument(p protocol.Policy) document {
	net := map[string]any{"mode": p.Network.Mode}
	if p.Network.Mode == protocol.NetProxy {
		net["allow"], net["proxy"] = list0(p.Network.Allow), p.Network.Proxy
	}
	d := document{
		V: protocol.PolicyVersion, WritableRoots: list0(p.WritableRoots), ReadableRoots: list0(p.ReadableRoots),
		Protected: list0(p.Protected), Mounts: []mountDocument{}, Network: net,
		Limits: map[string]uint64{
			"cpu_s": p.Limits.CPUSeconds, "wall_s": p.Limits.WallSeconds, "mem_bytes": p.Limits.MemBytes,
			"pids": p.Limits.Pids, "fsize_bytes": p.Limits.FsizeBytes, "output_bytes": p.Limits.OutputBytes,
		},
		EnvAllow: list0(p.EnvAllow), Scratch: p.Scratch,
	}
	for _, m := range p.Mounts {
		d.Mounts = append(d.Mounts, mountDocument{m.Path, string(m.Access), m.Required})
	}
	return d
}

// list0 is never null: every key of a policy is required.
func list0(l []string) []string { return append([]string{}, l...) }
