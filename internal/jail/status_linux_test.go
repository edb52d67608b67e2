package jail

import (
	"os"
	"os/exec"
	"testing"
)

// Without a pidfd that tells (before Linux 6.15), the scaffolding's own status is
// the command's.
func TestStatusWithoutPidfd(t *testing.T) {
	for script, want := range map[string][2]int{
		"exit 0": {0, 0}, "exit 7": {7, 0}, "exit 143": {143, 0}, "kill -KILL $$": {137, 9},
	} {
		cmd := exec.Command("sh", "-c", script)
		_ = cmd.Run()
		s := &supervision{host: &Host{}, p: &process{payloadFD: -1, exit: make(chan *os.ProcessState, 1)}}
		s.p.exit <- cmd.ProcessState
		if code, signal, known := s.status(); code != want[0] || signal != want[1] || !known {
			t.Errorf("%s: got %d, %d, expected %v", script, code, signal, want)
		}
	}
}
