//go:build !unix

package fence

import "os"

const readFlags = os.O_RDONLY
