package broker_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"sandboxd/protocol"
	"sandboxd/protocol/broker"
)

// One helper runs commands one after the other. The command writes its workspace, has
// no network, and a report that misses a demanded layer is an error.
func Example() {
	dir, err := os.MkdirTemp("", "workspace-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	policy := protocol.Policy{
		WritableRoots: []string{dir},
		Network:       protocol.Network{Mode: protocol.NetOff},
		EnvAllow:      []string{"PATH"},
		Scratch:       protocol.ScratchTmpfs,
	}
	ctx := context.Background()
	h, err := broker.Start(ctx, broker.Options{Path: sandboxd(), Policy: &policy, Demand: broker.Full})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer h.Close()
	res, err := h.Exec(ctx, broker.Command{Argv: []string{"sh", "-c", "echo hello; echo x > made; exit 3"}, Cwd: dir, Stdout: os.Stdout})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = os.Stat(dir + "/made")
	fmt.Println("exit code", res.Code, "degraded", res.Degraded, "file", err == nil)
	// Output:
	// hello
	// exit code 3 degraded false file true
}

// The context stops a command by the ladder: SIGTERM, two seconds, SIGKILL.
func ExampleHelper_Exec() {
	policy := protocol.Policy{Network: protocol.Network{Mode: protocol.NetOff}, EnvAllow: []string{"PATH"}, Scratch: protocol.ScratchTmpfs}
	h, err := broker.Start(context.Background(), broker.Options{Path: sandboxd(), Policy: &policy})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer h.Close()

	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	res, err := h.Exec(ctx, broker.Command{Argv: []string{"sleep", "600"}, Cwd: "/usr"})
	fmt.Println(errors.Is(err, context.DeadlineExceeded), res.Cancelled)

	_, err = h.Exec(context.Background(), broker.Command{Argv: []string{"mke"}, Cwd: "/usr"})
	fmt.Println(errors.Is(err, broker.ErrSpawnFailed))
	// Output:
	// true true
	// true
}
