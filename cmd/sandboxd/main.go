// Command sandboxd runs one untrusted command at a time in a kernel-enforced jail
// and says what was enforced. This package only selects the role by the first
// argument and passes the exit code on; it protects nothing by itself.
package main

import (
	"os"

	"sandboxd/internal/cli"
	"sandboxd/internal/leash"
	"sandboxd/internal/server"
	"sandboxd/internal/stage2"
)

func main() {
	// Stage 2 comes first: it runs once per command, and what it costs is added
	// to every execution.
	if len(os.Args) > 1 && os.Args[1] == "--exec" {
		os.Exit(stage2.Main())
	}
	if len(os.Args) > 1 && os.Args[1] == server.ProbeRole {
		os.Exit(server.Probe(os.Args[2:]))
	}
	if len(os.Args) > 1 && os.Args[1] == leash.Role {
		os.Exit(leash.Main())
	}
	os.Exit(role(os.Args[1:]))
}

func role(args []string) int {
	if len(args) == 0 && cli.OnTerminal() {
		return cli.Lost()
	}
	if serves(args) {
		return server.Main(args, cli.Version())
	}
	s := cli.OS()
	s.ServerUsage = server.Usage
	return cli.Main(args, s)
}

// serves says whether the arguments ask for the server role: none at all, or a
// flag that is not one of the roles of the command line. The server itself
// refuses a flag it does not know, so that a misspelt one drops no ceiling.
func serves(args []string) bool {
	return len(args) == 0 || (len(args[0]) > 1 && args[0][0] == '-' && !cli.Role(args[0]))
}
