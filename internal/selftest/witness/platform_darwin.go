package witness

import (
	"fmt"
	"os/exec"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

func platformRoles() []role { return unixRoles() }

// endedAs waits for the end of a child and gives the effective user that it had. A
// zombie stands in the process table with it until it is reaped.
func endedAs(pid int) (int, error) {
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		out, err := exec.Command("/bin/ps", "-o", "uid=,state=", "-p", fmt.Sprint(pid)).Output()
		if err != nil {
			return 0, err
		}
		if f := strings.Fields(string(out)); len(f) == 2 && strings.HasPrefix(f[1], "Z") {
			return size(f[0]), nil
		}
		if time.Now().After(end) {
			return 0, fmt.Errorf("the program did not end within %v", patience)
		}
	}
}

func sockets(r *reporter, families []string) {
	numbers := map[string]int{"unix": unix.AF_UNIX, "inet": unix.AF_INET, "inet6": unix.AF_INET6}
	for _, name := range families {
		family, ok := numbers[name]
		if !ok {
			r.answer(name, "", errLacks)
			continue
		}
		fd, err := unix.Socket(family, unix.SOCK_STREAM, 0)
		if err == nil {
			unix.Close(fd)
		}
		r.answer(name, "", err)
	}
}
