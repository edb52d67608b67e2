package cli

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"time"

	"golang.org/x/sys/unix"

	"sandboxd/internal/doctor"
	"sandboxd/internal/seatbelt"
)

// surroundings tries whether a profile can be applied: inside another sandbox it
// cannot.
func surroundings(f *doctor.Facts, _ options, _ System) {
	f.Release, _ = unix.Sysctl("kern.osrelease")
	f.Seatbelt, f.NoSeatbelt = seatbelt.Classify(trySeatbelt())
}

func trySeatbelt() seatbelt.Attempt {
	if _, err := os.Stat(seatbelt.Path); errors.Is(err, os.ErrNotExist) {
		return seatbelt.Attempt{Missing: true}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	var said bytes.Buffer
	cmd := exec.CommandContext(ctx, seatbelt.Path, "-p", seatbelt.Trial, seatbelt.TrialProgram)
	cmd.Env, cmd.Dir, cmd.Stderr, cmd.WaitDelay = []string{}, "/", &said, time.Second
	err := cmd.Run()
	a := seatbelt.Attempt{TimedOut: ctx.Err() != nil, Stderr: said.String()}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		a.Exit = exit.ExitCode()
	} else if err != nil {
		a.StartErr = err.Error()
	}
	return a
}
