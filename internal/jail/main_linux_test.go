package jail

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "--leave-terminal" {
		before, err1 := hasTerminal()
		left := leaveTerminal()
		after, err2 := hasTerminal()
		fmt.Println(before, left, after, err1, err2)
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}
