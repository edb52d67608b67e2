package probe

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"time"

	"sandboxd/internal/seatbelt"
)

// trialBound is how long sandbox-exec may take.
const trialBound = 30 * time.Second

// TrySeatbelt applies a profile that denies nothing: inside another sandbox the kernel
// refuses even that.
func TrySeatbelt(ctx context.Context) seatbelt.Attempt {
	if _, err := os.Stat(seatbelt.Path); errors.Is(err, os.ErrNotExist) {
		return seatbelt.Attempt{Missing: true}
	}
	ctx, cancel := context.WithTimeout(ctx, trialBound)
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
