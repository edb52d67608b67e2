package main

import (
	"fmt"
	"math"

	seccomp "github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/net/bpf"
)

// assemble turns a policy into a program for any target. The library's own
// Policy.Assemble only knows the architecture it runs on; this uses the same
// label assembler with another table of numbers, and TestSameAsLibrary shows that
// the two agree where both can be had.
func assemble(t target, p seccomp.Policy) ([]bpf.Instruction, error) {
	prog := seccomp.NewProgram()
	for _, group := range p.Syscalls {
		if err := assembleGroup(&prog, t, group); err != nil {
			return nil, err
		}
	}
	prog.Ret(p.DefaultAction)
	body, err := prog.Assemble()
	if err != nil {
		return nil, err
	}
	return prologue(t, body)
}

// prologue judges only calls of the target's own architecture and, on x86-64,
// answers x32. Everything else meets the default action at the end: the guard
// has refused it already.
func prologue(t target, body []bpf.Instruction) ([]bpf.Instruction, error) {
	var x32 []bpf.Instruction
	if t.info == arch.X86_64 {
		x32 = []bpf.Instruction{
			bpf.JumpIf{Cond: bpf.JumpGreaterOrEqual, Val: x32Bit, SkipFalse: 1},
			bpf.RetConstant{Val: uint32(enosys)},
		}
	}
	skip := len(x32) + len(body)
	if skip > math.MaxUint8 {
		return nil, fmt.Errorf("a program of %d instructions needs long jumps", skip)
	}
	program := []bpf.Instruction{
		bpf.LoadAbsolute{Off: offArch, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: uint32(t.info.ID), SkipTrue: uint8(skip)},
		bpf.LoadAbsolute{Off: offNumber, Size: 4},
	}
	return append(append(program, x32...), body...), nil
}

func assembleGroup(prog *seccomp.Program, t target, group seccomp.SyscallGroup) error {
	calls, err := numbers(t, group)
	if err != nil {
		return err
	}
	action, next := prog.NewLabel(), prog.NewLabel()
	for i, call := range calls {
		call.Assemble(prog, i < len(calls)-1, action, next)
	}
	prog.SetLabel(action)
	prog.Ret(group.Action)
	prog.SetLabel(next)
	return nil
}

func numbers(t target, group seccomp.SyscallGroup) ([]seccomp.SyscallWithConditions, error) {
	var calls []seccomp.SyscallWithConditions
	add := func(name string, conditions ...seccomp.ArgumentConditions) error {
		number, ok := t.info.SyscallNames[name]
		if !ok {
			return fmt.Errorf("no system call %q on %s", name, t.goarch)
		}
		calls = append(calls, seccomp.SyscallWithConditions{Num: uint32(number), Conditions: conditions})
		return nil
	}
	for _, name := range group.Names {
		if err := add(name); err != nil {
			return nil, err
		}
	}
	for _, c := range group.NamesWithCondtions {
		if err := add(c.Name, c.Conditions); err != nil {
			return nil, err
		}
	}
	return calls, nil
}
