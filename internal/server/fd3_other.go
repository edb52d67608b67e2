//go:build !unix

package server

import "errors"

func readPolicyFD(<-chan struct{}) ([]byte, error) {
	return nil, errors.New("this system hands no descriptor 3 to a program")
}

func hangup(<-chan struct{}) <-chan struct{} { return nil }

func noStdout() bool { return false }
