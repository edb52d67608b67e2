//go:build unix

package testenv

import (
	"os/exec"
	"syscall"
)

func setCredential(cmd *exec.Cmd, u User) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(u.UID), Gid: uint32(u.GID)}
}
