//go:build !unix

package cli

import (
	"io"
	"os"
	"syscall"
)

var watched = []os.Signal{os.Interrupt, syscall.SIGTERM}

func meaning(os.Signal) request { return toEnd }

func pause() {}

func foregroundOnly(r io.Reader) io.Reader { return r }

func takes(io.Writer) bool { return false }

// windowWidth is not asked for here.
func windowWidth(*os.File) int { return -1 }

func closedStreams(_, _, _ *os.File) (output, both bool) { return false, false }
