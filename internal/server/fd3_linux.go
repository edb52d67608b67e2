package server

import "golang.org/x/sys/unix"

// pollHangup asks for a closed peer of a socket too; POLLHUP is always told.
const pollHangup = unix.POLLRDHUP
