package seccomp

import "sandboxd/internal/stage2/spec"

//go:generate go run ./gen

// Instruction is one classic BPF instruction; its layout is that of the kernel's
// struct sock_filter (linux/filter.h).
type Instruction struct {
	Code   uint16 // operation
	Jt, Jf uint8  // instructions to skip when a comparison holds or does not
	K      uint32 // operand
}

// table is the set of programs of one architecture. Its literals are generated.
type table struct {
	guard          []Instruction
	left           []Instruction // what is left on the host
	hardening      []Instruction
	hardeningTrace []Instruction // hardening with the trace calls too
	net            []Instruction
}

// Programs returns the programs to install for o, in order of installation. arch
// is a GOARCH; nil means that there is no table for it, and that nothing may be
// claimed. The slices are shared: callers must not write to them.
//
// The guard comes first so that no moment exists in which a number is judged that
// belongs to another architecture.
func Programs(arch string, o spec.Seccomp) [][]Instruction {
	t := tableOf(arch)
	if t == nil {
		return nil
	}
	programs := [][]Instruction{t.guard, t.left}
	if o.DenyTrace {
		programs = append(programs, t.hardeningTrace)
	} else {
		programs = append(programs, t.hardening)
	}
	if o.DenyNet {
		programs = append(programs, t.net)
	}
	return programs
}

func tableOf(arch string) *table {
	switch arch {
	case "amd64":
		return &amd64Table
	case "arm64":
		return &arm64Table
	}
	return nil
}
