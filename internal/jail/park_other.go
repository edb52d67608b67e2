//go:build !linux

package jail

import "sandboxd/protocol"

// Ready has nothing to build ahead here.
func (h *Host) Ready(protocol.Policy) {}

// Close has nothing to end.
func (h *Host) Close() error { return nil }
