package jail

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"sandboxd/internal/stage2/spec"
)

// message is what came over fd 4: a report or a failure, with the sender as the
// kernel names it in the helper's own pid namespace.
type message struct {
	spec.Message
	pid   int
	pidfd int // -1 where the kernel has no SCM_PIDFD (before 6.5)
}

// reportSocket makes the pair behind fd 4. Credentials are switched on before
// anything can be written, else the first message would come without them.
func reportSocket() (ours, theirs *os.File, err error) {
	p, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot make the report socket: %w", err)
	}
	if err := unix.SetsockoptInt(p[0], unix.SOL_SOCKET, unix.SO_PASSCRED, 1); err != nil {
		unix.Close(p[0])
		unix.Close(p[1])
		return nil, nil, fmt.Errorf("cannot ask for credentials on the report socket: %w", err)
	}
	_ = unix.SetsockoptInt(p[0], unix.SOL_SOCKET, unix.SO_PASSPIDFD, 1) // Linux 6.5
	_ = unix.SetNonblock(p[0], true)
	return os.NewFile(uintptr(p[0]), "report"), os.NewFile(uintptr(p[1]), "report-peer"), nil
}

// close gives back the descriptor of a message that is of no use.
func (m message) close() {
	if m.pidfd >= 0 {
		unix.Close(m.pidfd)
	}
}

var noMessage = message{pidfd: -1}

// letters are buffers for a message, which a packet socket gives whole or cut.
var letters = newBuffers(2, spec.MaxMessage)

// receive reads one message, or errEndOfReport once stage 2 has executed the
// command or died.
func receive(f *os.File, buf []byte) (message, error) {
	c, err := f.SyscallConn()
	if err != nil {
		return noMessage, err
	}
	oob := make([]byte, 256)
	var n, oobn, flags int
	var rerr error
	err = c.Read(func(fd uintptr) bool {
		n, oobn, flags, _, rerr = unix.Recvmsg(int(fd), buf, oob, unix.MSG_CMSG_CLOEXEC)
		return rerr != unix.EAGAIN && rerr != unix.EINTR
	})
	if err = errors.Join(err, rerr); err != nil {
		return noMessage, err
	}
	if n == 0 {
		return noMessage, errEndOfReport
	}
	m := message{pidfd: -1}
	m.pid, m.pidfd = sender(oob[:oobn])
	if flags&unix.MSG_TRUNC != 0 {
		return m, errors.New("a message on fd 4 is too long")
	}
	m.Message, err = spec.DecodeMessage(buf[:n])
	return m, err
}

func sender(oob []byte) (pid, pidfd int) {
	pidfd = -1
	msgs, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return 0, -1
	}
	for i := range msgs {
		switch m := &msgs[i]; {
		case m.Header.Level != unix.SOL_SOCKET:
		case m.Header.Type == unix.SCM_CREDENTIALS:
			if c, err := unix.ParseUnixCredentials(m); err == nil {
				pid = int(c.Pid)
			}
		case m.Header.Type == unix.SCM_PIDFD && len(m.Data) >= 4:
			pidfd = int(int32(binary.NativeEndian.Uint32(m.Data)))
		case m.Header.Type == unix.SCM_RIGHTS: // nobody has reason to send one
			fds, _ := unix.ParseUnixRights(m)
			for _, fd := range fds {
				unix.Close(fd)
			}
		}
	}
	return pid, pidfd
}
