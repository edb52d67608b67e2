//go:build linux

package attack

import (
	"os"
	"testing"

	"sandboxd/internal/testenv"
)

// The test binary is also the hostile program, so that a machine without a compiler
// can run the corpus: the first argument selects the role.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		if role, ok := roles()[os.Args[1]]; ok {
			os.Exit(role(os.Args[2:]))
		}
	}
	os.Exit(testenv.RunMain(m))
}

func roles() map[string]func([]string) int {
	return map[string]func([]string) int{
		"@batch":  batch,
		"@one":    one,
		"@victim": victim,
		"@stay":   stay,
		"@env":    environment,
		"@storm":  storm,
		"@hop":    hop,
		"@inodes": inodes,
		"@opens":  opens,
	}
}
