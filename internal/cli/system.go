package cli

import (
	"os"
	"os/signal"
)

// OS returns the real System of this process.
func OS() System {
	return System{
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Environ: os.Environ(), Getwd: os.Getwd, Executable: os.Executable,
		Signals: interrupts,
	}
}

func interrupts() Signals {
	c := make(chan os.Signal, 4)
	signal.Notify(c, watched...)
	return Signals{c, func() { signal.Stop(c) }}
}
