package witness

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// patience bounds a connection that nobody answers.
const patience = 5 * time.Second

// connect reports what the listener says first. An abstract address begins with "@".
func connect(r *reporter, args []string) {
	found, err := call(args[0], args[1])
	r.answer("connect", found, err)
}

func call(network, address string) (string, error) {
	if network == "unix" && !strings.HasPrefix(address, "@") {
		// An address holds about 100 bytes (unix(7)), a path as many as it likes.
		if err := os.Chdir(filepath.Dir(address)); err != nil {
			return "", err
		}
		address = filepath.Base(address)
	}
	c, err := net.DialTimeout(network, address, patience)
	if err != nil {
		return "", err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(patience))
	b, err := io.ReadAll(c)
	return string(b), err
}

// hostile announces itself, does the two things that it may, tries each thing that
// it must not, and announces its end (the frame's own). Arguments are KEY=VALUE:
//
//	read, search, write, create, make, ...=PATH   as --probe-file
//	tcp, unix=ADDRESS                             a listener of the host
//	env=NAME                                      a variable
//
// A KEY may carry a number.
func hostile(r *reporter, args []string) {
	for _, arg := range args {
		key, value, _ := strings.Cut(arg, "=")
		var found string
		var err error
		switch action := strings.TrimRight(key, "0123456789"); action {
		case "tcp", "unix":
			found, err = call(action, value)
		case "env":
			environment(r, []string{value})
			continue
		default:
			found, err = act(action, value, r.nonce)
		}
		r.answer(key, found, err)
	}
}
