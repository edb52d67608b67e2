package cli

import (
	"errors"
	"os"
	"os/signal"
	"slices"
)

// OS returns the real System of this process.
func OS() System {
	return System{
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Environ: os.Environ(), Getwd: os.Getwd, Executable: os.Executable,
		Signals: interrupts,
	}
}

// interrupts leaves ignored what nohup(1), or a shell for a job in the background, has
// this process ignore.
func interrupts() Signals {
	c := make(chan os.Signal, 4)
	heard := slices.DeleteFunc(slices.Clone(watched), signal.Ignored)
	if len(heard) > 0 { // none would mean all
		signal.Notify(c, heard...)
	}
	return Signals{c, func() { signal.Stop(c) }}
}

// OnTerminal says whether somebody sits in front of this process: frames come from a
// program.
func OnTerminal() bool { return windowWidth(os.Stdin) >= 0 }

// Lost is for whoever types `sandboxd` alone to see what it is.
func Lost() int {
	return complain(OS(), exitUsage, errors.New("alone it is a server, for a program at the other end; `sandboxd run -- CMD` runs a command in the jail, and `sandboxd help` lists the rest"))
}
