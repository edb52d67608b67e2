//go:build !unix

package repos

import "os"

const (
	readFlags = os.O_RDONLY
	dirFlags  = os.O_RDONLY
)
