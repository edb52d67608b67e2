package selftest

import (
	"fmt"
	"strings"

	"sandboxd/protocol"
)

func networkProbes() []Probe {
	return []Probe{
		{Name: "sockets", Means: "sockets of other families than AF_UNIX, by every entry of the kernel, with the network off", Layers: bySockets, run: sockets().probe},
		{Name: "tcp", Means: "a connection to a TCP listener of the host, with the network off", Layers: byNetwork, run: tcp().probe},
		{Name: "abstract-socket", Means: "an abstract socket of the host (workspace preset)", Linux: true, Layers: []string{protocol.TagBwrap, protocol.TagLandlockScope}, run: abstract(strict).probe},
		{Name: "path-socket", Means: "a path socket of the host (workspace preset)", Layers: byPath, run: path("out/socket", strict).probe},
		{Name: "fence-abstract-socket", Means: "an abstract socket of the host (fence preset)", Linux: true, Layers: []string{protocol.TagLandlockScope}, run: abstract(fence).probe},
		{Name: "fence-service-socket", Means: "the socket of a user's own service (fence preset)", Layers: byPath, run: service().probe},
		{Name: "fence-path-socket", Means: "any other path socket of the host (fence preset)", Layers: []string{protocol.TagLandlockUnix}, Linux: true, run: path("out/socket", fence).probe,
			Left: "a fence leaves path sockets outside the masked places reachable"},
	}
}

func fence(s *site) protocol.Policy { return s.fence() }

func sockets() denial {
	return denial{
		role: "socket", must: []string{"inet"}, may: []string{"inet6", "netlink", "vsock", "int80", "x32", "io_uring"}, allowed: []string{"unix"},
		args: func(*lane, *site) []string {
			return []string{"unix", "inet", "inet6", "netlink", "vsock", "int80", "x32", "io_uring"}
		},
		unjailed: true,
	}
}

func connecting(network string, address func(l *lane, s *site) string) denial {
	return denial{
		role: "connect", must: []string{"connect"}, unjailed: true,
		args: func(l *lane, s *site) []string { return []string{network, address(l, s)} },
		extra: func(_ *lane, _ *site, o outcome) string {
			if o.shows(greeting) {
				return "the listener's greeting came out of the jail"
			}
			return ""
		},
	}
}

func tcp() denial {
	return connecting("tcp", func(l *lane, _ *site) string { return l.shared.tcp })
}

func abstract(policy func(*site) protocol.Policy) denial {
	name := func(_ *lane, s *site) string { return "@sandboxd-selftest-" + s.nonce }
	d := connecting("unix", name)
	d.policy = policy
	d.setup = func(l *lane, s *site) error {
		_, err := l.shared.listen("unix", name(l, s))
		return err
	}
	return d
}

func path(rel string, policy func(*site) protocol.Policy) denial {
	d := connecting("unix", func(_ *lane, s *site) string { return s.path(rel) })
	d.policy = policy
	d.setup = func(l *lane, s *site) error {
		return l.shared.listenAt(s.path(rel))
	}
	return d
}

// service is a socket in the directory of SSH_AUTH_SOCK, which the helpers were
// started with. What a fence leaves reachable is in the report, and in the note.
func service() denial {
	d := connecting("unix", func(l *lane, _ *site) string { return l.shared.agent })
	d.policy = fence
	d.note = func(o outcome) string {
		for _, e := range o.exit.Enforcement {
			if rest, ok := strings.CutPrefix(e, "skip:"+protocol.TagSockets+":"); ok {
				return fmt.Sprintf("left reachable by a fence: %s", strings.TrimSpace(rest))
			}
		}
		return "left reachable by a fence: TCP, UDP and netlink"
	}
	return d
}
