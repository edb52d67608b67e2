package cli

import (
	"os"
	"os/signal"
	"syscall"
)

// OS returns the real System of this process.
func OS() System {
	return System{
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Environ: os.Environ(), Getwd: os.Getwd, Executable: os.Executable,
		Signals: interrupts,
	}
}

func interrupts() (<-chan os.Signal, func()) {
	c := make(chan os.Signal, 2)
	signal.Notify(c, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	return c, func() { signal.Stop(c) }
}
