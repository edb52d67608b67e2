package stage2

import (
	"golang.org/x/sys/unix"

	"sandboxd/internal/stage2/spec"
)

// standby waits, with everything applied that the policy alone decides, for the
// command. The end of fd 4 means that there will be none.
func (p *process) standby() *spec.Failure {
	if !send(spec.Parked{}.Append(nil)) {
		p.alone = true
		return nil
	}
	var byte1 [1]byte
	oob := make([]byte, unix.CmsgSpace(4))
	n, oobn, err := 0, 0, error(unix.EINTR)
	for err == unix.EINTR {
		n, oobn, _, _, err = unix.Recvmsg(spec.ReportFD, byte1[:], oob, unix.MSG_CMSG_CLOEXEC)
	}
	if err != nil {
		return failure(spec.StepCommand, "cannot receive the command", err)
	}
	if n == 0 {
		p.alone = true
		return nil
	}
	p.allowed = byte1[0] == spec.Go
	fd := received(oob[:oobn])
	if fd < 0 {
		return failure(spec.StepCommand, "the command came without a descriptor", nil)
	}
	b, f := readWhole(fd, spec.StepCommand, "command")
	if f != nil {
		return f
	}
	p.spec.Command, err = spec.DecodeCommand(b)
	if err != nil {
		return failure(spec.StepCommand, "cannot decode the command", err)
	}
	return nil
}

func received(oob []byte) int {
	msgs, err := unix.ParseSocketControlMessage(oob)
	if err != nil || len(msgs) != 1 {
		return -1
	}
	fds, err := unix.ParseUnixRights(&msgs[0])
	if err != nil || len(fds) != 1 {
		return -1
	}
	return fds[0]
}
