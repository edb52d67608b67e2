// Command sandboxd-stage2 is the role `sandboxd --exec` and nothing else. It is no program of its
// own: scripts/build puts it into sandboxd, see internal/stage2/carried.
package main

import (
	"os"

	"sandboxd/internal/stage2"
)

func main() { os.Exit(stage2.Main()) }
