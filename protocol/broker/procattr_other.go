//go:build !unix

package broker

import "syscall"

func ownGroup() *syscall.SysProcAttr { return nil }
