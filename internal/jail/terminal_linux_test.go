package jail

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"sandboxd/internal/testenv"
)

// A helper gives its terminal up for itself alone: where it leads the session, which
// would lose it, it keeps it and says so.
func TestLeaveTerminal(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const shell = `"$0" --leave-terminal; cut -d" " -f7 /proc/$$/stat`
	for _, test := range []struct {
		name       string
		argv       []string
		attr       syscall.SysProcAttr
		want       string
		shellKeeps bool
	}{
		{"none", []string{self, "--leave-terminal"}, syscall.SysProcAttr{Setsid: true}, "false true false", false},
		{"its leader", []string{self, "--leave-terminal"}, syscall.SysProcAttr{Setsid: true, Setctty: true}, "true false true", false},
		{"another leader", []string{"/bin/sh", "-c", shell, self}, syscall.SysProcAttr{Setsid: true, Setctty: true}, "true true false", true},
	} {
		_, slave := testenv.Terminal(t)
		cmd := exec.Command(test.argv[0], test.argv[1:]...)
		cmd.Stdin, cmd.SysProcAttr = slave, &test.attr
		out, err := cmd.CombinedOutput()
		said, shells, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
		if err != nil || said != test.want+" <nil> <nil>" {
			t.Errorf("%s: %v: %s, want %s", test.name, err, out, test.want)
		}
		if test.shellKeeps != (shells != "" && shells != "0") {
			t.Errorf("%s: the leader's terminal is %q", test.name, shells)
		}
	}
}
