// Package carried holds the program cmd/sandboxd-stage2, which a helper executes inside a jail in
// place of itself: nothing but stage 2 is linked into it, so it starts in three quarters of the
// time. Nothing else is different, and sandboxd itself remains able to play the role.
package carried

import _ "embed" // for Image

// Image is that program for this platform. scripts/build puts it here by an overlay of the
// empty file in the tree; it stays empty with a bare `go build`.
//
//go:embed image
var Image string
