//go:build !linux && !darwin

package roots

import (
	"errors"

	"sandboxd/internal/host"
)

var errPlatform = errors.New("this system has no jail, so nothing is reached; use Linux or macOS")

func openRoot() (int, host.Node, error) { return noFD, host.Node{}, errPlatform }

func open(int, string) (object, error) { return object{fd: noFD}, errPlatform }

func descriptorBudget() int { return 0 }

func dupFD(int) (int, error) { return noFD, errPlatform }

func closeFD(int) {}
