//go:build !unix

package selftest

import (
	"context"
	"errors"
	"os"
	"os/signal"
)

func interruptible() (context.Context, func()) {
	return signal.NotifyContext(context.Background(), os.Interrupt)
}

func terminate(*os.Process) error { return errors.ErrUnsupported }
func free(string) bool            { return true }
func (sh *shared) leak(string)    {}
func plantSetuid(*site) error     { return errors.ErrUnsupported }
func sweep(string)                {}
func room(string) string          { return "" }

func claim(parent string) (string, func(), error) {
	dir, err := os.MkdirTemp(parent, prefix)
	return dir, func() { os.RemoveAll(dir) }, err
}

func setuidProgram(*site) []string { return []string{"none-on-this-host"} }

// IsTerminal says whether f is a terminal.
func IsTerminal(*os.File) bool { return false }

// Closed says whether standard output was closed when this process started.
func Closed(_, _ *os.File) bool { return false }

// Replaced is not asked for here.
func Replaced(*os.File) bool { return false }
