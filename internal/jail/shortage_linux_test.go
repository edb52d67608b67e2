package jail

import (
	"errors"
	"fmt"
	"testing"

	"golang.org/x/sys/unix"

	"sandboxd/internal/plan"
	"sandboxd/protocol"
)

// A machine that has run out of something is no reason to refuse a policy.
func TestShortagesAreNoRefusals(t *testing.T) {
	for _, tc := range []struct {
		err  error
		code protocol.Code
	}{
		{unix.EMFILE, protocol.CodeSpawnFailed}, {unix.ENFILE, protocol.CodeSpawnFailed},
		{unix.ENOMEM, protocol.CodeSpawnFailed}, {unix.EAGAIN, protocol.CodeSpawnFailed},
		{unix.ENOENT, protocol.CodeRefused}, {unix.EACCES, protocol.CodeRefused},
		{&plan.Refusal{Reason: "no"}, protocol.CodeRefused},
		{refused("no"), protocol.CodeRefused}, {spawnFailed("no"), protocol.CodeSpawnFailed},
	} {
		if got := asError(errors.Join(fmt.Errorf("cannot do it: %w", tc.err), nil), refused); got.Code != tc.code {
			t.Errorf("%v: got %s", tc.err, got.Code)
		}
	}
}
