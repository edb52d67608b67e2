//go:build linux

package attack

import (
	"errors"
	"slices"
)

// attack is one row of the corpus.
type attack struct {
	name  string
	class string
	do    func(w *world) error // nil: it got in
	// setup makes what the control attacks where the jail has it, or where the attack
	// needs what a jail takes away (a mask, an inherited descriptor). Control only.
	setup func(w *world) error
	// after looks from outside when the execution has ended; nil: it got in.
	after func(w *world) error

	root   bool   // only root can do it without a jail: no control as another user
	needs  string // what the control needs of a host and some lack
	open   string // it gets in, by design: why
	userns bool   // run in new user and mount namespaces, if it can make them
	mounts bool   // the control runs in a mount namespace of its own
	files  bool   // has files of its own: see world
}

// The classes of the corpus.
const (
	fileSystem = "file system"
	processes  = "processes"
	network    = "network"
	resources  = "resources"
	privileges = "privileges"
	descriptor = "the helper's descriptors"
	terminal   = "terminal"
	variables  = "environment"
)

// corpus is every attack that a command makes, by name.
var corpus = slices.Concat(
	in(fileSystem, protectedAttacks()), in(fileSystem, missingAttacks()), in(fileSystem, readableAttacks()),
	in(fileSystem, outsideAttacks()), in(fileSystem, mountAttacks()), in(fileSystem, systemAttacks()),
	in(processes, signalAttacks()), in(processes, holdAttacks()), in(processes, initAttacks()),
	in(processes, ipcAttacks()), in(processes, stayAttacks()),
	in(network, socketAttacks()), in(network, reachAttacks()),
	in(privileges, privilegeAttacks()), in(privileges, suidAttacks()), in(resources, resourceAttacks()),
	in(descriptor, descriptorAttacks()), in(terminal, terminalAttacks()),
)

func in(class string, list []attack) []attack {
	for i := range list {
		list[i].class = class
		list[i].files = class == fileSystem
	}
	return list
}

func byName(name string) *attack {
	for i := range corpus {
		if corpus[i].name == name {
			return &corpus[i]
		}
	}
	return nil
}

// errMissed is an attack whose calls succeeded without the effect.
var errMissed = errors.New("no effect")

// until gives the first nil of several tries, else the last error.
func until[T any](list []T, try func(T) error) error {
	err := errMissed
	for _, one := range list {
		if err = try(one); err == nil {
			return nil
		}
	}
	return err
}

// steps gives the first error.
func steps(list ...func() error) error {
	for _, one := range list {
		if err := one(); err != nil {
			return err
		}
	}
	return nil
}
