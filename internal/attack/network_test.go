//go:build linux

package attack

import (
	"fmt"
	"io"
	"iter"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// socketAttacks open a socket that is no AF_UNIX one, in every way there is.
func socketAttacks() []attack {
	opens := func(domain, kind, proto int) func(*world) error {
		return func(*world) error {
			fd, err := unix.Socket(domain, kind, proto)
			if err == nil {
				unix.Close(fd)
			}
			return err
		}
	}
	list := []attack{
		{name: "socket: IPv4 TCP", do: opens(unix.AF_INET, unix.SOCK_STREAM, 0)},
		{name: "socket: IPv4 UDP", do: opens(unix.AF_INET, unix.SOCK_DGRAM, 0)},
		{name: "socket: IPv4 raw", root: true, do: opens(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP)},
		{name: "socket: IPv4 all protocols", root: true, do: opens(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_RAW)},
		{name: "socket: IPv6 TCP", needs: "IPv6", do: opens(unix.AF_INET6, unix.SOCK_STREAM, 0)},
		{name: "socket: IPv6 UDP", needs: "IPv6", do: opens(unix.AF_INET6, unix.SOCK_DGRAM, 0)},
		{name: "socket: IPv6 raw", needs: "IPv6", root: true, do: opens(unix.AF_INET6, unix.SOCK_RAW, unix.IPPROTO_ICMPV6)},
		{name: "socket: packet raw", needs: "packet sockets", root: true, do: opens(unix.AF_PACKET, unix.SOCK_RAW, 0)},
		{name: "socket: packet cooked", needs: "packet sockets", root: true, do: opens(unix.AF_PACKET, unix.SOCK_DGRAM, 0)},
		{name: "socket: non-blocking and close-on-exec", do: opens(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)},
	}
	for _, x := range []struct {
		name        string
		kind, proto int
	}{
		{"IPv4 ping", unix.SOCK_DGRAM, unix.IPPROTO_ICMP}, {"IPv4 MPTCP", unix.SOCK_STREAM, unix.IPPROTO_MPTCP},
		{"IPv4 SCTP", unix.SOCK_STREAM, unix.IPPROTO_SCTP}, {"IPv4 UDP-Lite", unix.SOCK_DGRAM, unix.IPPROTO_UDPLITE},
	} {
		list = append(list, attack{name: "socket: " + x.name, needs: x.name, do: opens(unix.AF_INET, x.kind, x.proto)})
	}
	for name, proto := range sorted(map[string]int{
		"route": unix.NETLINK_ROUTE, "sock_diag": unix.NETLINK_SOCK_DIAG, "audit": unix.NETLINK_AUDIT,
		"kobject_uevent": unix.NETLINK_KOBJECT_UEVENT, "generic": unix.NETLINK_GENERIC, "netfilter": unix.NETLINK_NETFILTER,
		"xfrm": unix.NETLINK_XFRM, "crypto": unix.NETLINK_CRYPTO, "connector": unix.NETLINK_CONNECTOR,
	}) {
		a := attack{name: "socket: netlink " + name, do: opens(unix.AF_NETLINK, unix.SOCK_RAW, proto)}
		if proto != unix.NETLINK_ROUTE {
			a.needs = "netlink " + name
		}
		list = append(list, a)
	}
	// Many kernels have none of these; where one is there, it is no way out either.
	for name, x := range sorted(map[string][2]int{
		"vsock": {unix.AF_VSOCK, unix.SOCK_STREAM}, "alg": {unix.AF_ALG, unix.SOCK_SEQPACKET}, "key": {unix.AF_KEY, unix.SOCK_RAW},
		"can": {unix.AF_CAN, unix.SOCK_RAW}, "tipc": {unix.AF_TIPC, unix.SOCK_DGRAM}, "rds": {unix.AF_RDS, unix.SOCK_SEQPACKET},
		"xdp": {unix.AF_XDP, unix.SOCK_RAW}, "bluetooth": {unix.AF_BLUETOOTH, unix.SOCK_RAW}, "qipcrtr": {unix.AF_QIPCRTR, unix.SOCK_DGRAM},
		"nfc": {unix.AF_NFC, unix.SOCK_RAW}, "pppox": {unix.AF_PPPOX, unix.SOCK_DGRAM}, "llc": {unix.AF_LLC, unix.SOCK_DGRAM},
		"x25": {unix.AF_X25, unix.SOCK_SEQPACKET}, "ax25": {unix.AF_AX25, unix.SOCK_DGRAM}, "ieee802154": {unix.AF_IEEE802154, unix.SOCK_RAW},
		"phonet": {unix.AF_PHONET, unix.SOCK_DGRAM}, "smc": {unix.AF_SMC, unix.SOCK_STREAM}, "kcm": {unix.AF_KCM, unix.SOCK_DGRAM},
		"mctp": {unix.AF_MCTP, unix.SOCK_DGRAM}, "rxrpc": {unix.AF_RXRPC, unix.SOCK_DGRAM},
	}) {
		list = append(list, attack{name: "socket: " + name, needs: "AF_" + strings.ToUpper(name), do: opens(x[0], x[1], 0)})
	}
	return append(list,
		attack{name: "socket: a domain of 64 bits", do: func(*world) error {
			_, err := call(unix.SYS_SOCKET, 1<<32|unix.AF_INET, unix.SOCK_STREAM, 0, 0, 0, 0)
			return err
		}},
		attack{name: "socket: a negative word above", do: func(*world) error {
			_, err := call(unix.SYS_SOCKET, 0xffffffff<<32|unix.AF_INET, unix.SOCK_DGRAM, 0, 0, 0, 0)
			return err
		}},
		attack{name: "socket: by x32", needs: "x32", do: func(*world) error {
			if runtime.GOARCH != "amd64" {
				return unix.ENOSYS
			}
			_, err := call(0x40000000|unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_STREAM, 0, 0, 0, 0)
			return err
		}},
		attack{name: "socket: a ring of io_uring", needs: "io_uring", do: func(*world) error {
			var params [120]byte // struct io_uring_params
			fd, err := call(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&params[0])), 0, 0, 0, 0)
			if err == nil {
				unix.Close(int(fd))
			}
			return err
		}},
		attack{name: "socket: in a network namespace of one's own", do: func(*world) error {
			cmd := exec.Command("/proc/self/exe", "@env")
			cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNET}
			return cmd.Run()
		}},
		attack{name: "socket: a tun device", root: true, needs: "/dev/net/tun", do: func(*world) error {
			_, err := unix.Open("/dev/net/tun", unix.O_RDWR, 0)
			return err
		}},
	)
}

// answers succeeds where a listener of the victim says its word.
func (w *world) answers(network, address string) error {
	c, err := net.DialTimeout(network, address, 10*time.Second)
	if err != nil {
		return err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	b, err := io.ReadAll(c)
	if err == nil && string(b) != w.Secret {
		err = errMissed
	}
	return err
}

// near dials a path socket: an address holds 108 bytes, so from its directory.
func (w *world) near(path string) error {
	if err := os.Chdir(filepath.Dir(path)); err != nil {
		return err
	}
	return w.answers("unix", filepath.Base(path))
}

// reachAttacks reach a listener outside.
func reachAttacks() []attack {
	return []attack{
		{name: "reach: TCP on the loopback", do: func(w *world) error { return w.answers("tcp", fmt.Sprintf("127.0.0.1:%d", w.Victim.TCP)) }},
		{name: "reach: TCP by any address of this host", do: func(w *world) error {
			return w.answers("tcp", fmt.Sprintf("0.0.0.0:%d", w.Victim.TCP))
		}},
		{name: "reach: UDP on the loopback", do: func(w *world) error {
			c, err := net.Dial("udp", fmt.Sprintf("127.0.0.1:%d", w.Victim.UDP))
			if err != nil {
				return err
			}
			_, err = c.Write([]byte("x"))
			return err
		}},
		{name: "reach: TCP fast open", do: func(w *world) error {
			fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
			if err != nil {
				return err
			}
			err = unix.Sendto(fd, []byte("x"), unix.MSG_FASTOPEN, &unix.SockaddrInet4{Port: w.Victim.TCP, Addr: [4]byte{127, 0, 0, 1}})
			return err
		}},
		{name: "reach: listen on TCP", do: func(*world) error {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err == nil {
				l.Close()
			}
			return err
		}},
		{name: "reach: an abstract socket", do: func(w *world) error { return w.answers("unix", w.Victim.Abstract) }},
		{name: "reach: an abstract datagram socket", do: func(w *world) error {
			fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
			if err != nil {
				return err
			}
			return unix.Sendto(fd, []byte("x"), 0, &unix.SockaddrUnix{Name: w.Victim.Datagram})
		}},
		{name: "reach: descriptors of an abstract socket", do: func(w *world) error {
			c, err := net.Dial("unix", w.Victim.Abstract+"-fd")
			if err != nil {
				return err
			}
			return w.receive(c.(*net.UnixConn))
		}},
		{name: "reach: a path socket outside the view", do: func(w *world) error {
			return w.near(filepath.Join(w.Base, "victim", "socket"))
		}},
		{name: "reach: a path socket through a planted link", do: func(w *world) error {
			link := filepath.Join(w.Base, "ws", "s-"+w.Nonce)
			if err := os.Symlink(filepath.Join(w.Base, "victim", "socket"), link); err != nil {
				return err
			}
			return w.near(link)
		}},
		{name: "reach: a path socket in a readable root", do: func(w *world) error {
			return w.near(filepath.Join(w.Base, "ro", "socket"))
		}, open: "connecting to a socket that a root shows needs ABI 9 of Landlock to be refused; read-only mounts do not"},
		{name: "reach: an inherited socket", setup: func(w *world) error {
			fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
			if err != nil {
				return err
			}
			return unix.Dup3(fd, 71, 0)
		}, do: func(w *world) error {
			return until(numbers(3, 256), func(fd int) error {
				return unix.Connect(fd, &unix.SockaddrInet4{Port: w.Victim.TCP, Addr: [4]byte{127, 0, 0, 1}})
			})
		}},
		{name: "reach: enter the victim's network namespace", root: true, do: func(w *world) error { return w.enter("net", unix.CLONE_NEWNET) }},
		{name: "reach: see the host's TCP sockets", do: func(w *world) error {
			return shows("/proc/net/tcp", fmt.Sprintf(":%04X ", w.Victim.TCP))
		}},
		{name: "reach: see the host's abstract sockets", do: func(w *world) error { return shows("/proc/net/unix", w.Victim.Abstract) }},
		{name: "reach: see the host's interfaces", do: func(*world) error {
			b, err := os.ReadFile("/proc/net/dev")
			if err == nil && strings.Count(string(b), ":") < 2 {
				err = errMissed
			}
			return err
		}, needs: "an interface beside the loopback"},
	}
}

// shows looks more than once: a table that changes while it is read shows not all.
func shows(path, text string) error {
	return until(numbers(0, 20), func(int) error {
		b, err := os.ReadFile(path)
		if err == nil && !strings.Contains(string(b), text) {
			err = errMissed
		}
		return err
	})
}

// receive takes a descriptor of the victim's directory and reads there.
func (w *world) receive(c *net.UnixConn) error {
	oob := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := c.ReadMsgUnix(make([]byte, 8), oob)
	if err != nil {
		return err
	}
	messages, err := unix.ParseSocketControlMessage(oob[:n])
	if err != nil || len(messages) == 0 {
		return errMissed
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) == 0 {
		return errMissed
	}
	return w.reads(fmt.Sprintf("/proc/self/fd/%d/victim-secret", fds[0]))
}

// sorted goes through a map in the order of its keys.
func sorted[T any](m map[string]T) iter.Seq2[string, T] {
	return func(yield func(string, T) bool) {
		for _, k := range slices.Sorted(maps.Keys(m)) {
			if !yield(k, m[k]) {
				return
			}
		}
	}
}
