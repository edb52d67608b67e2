//go:build linux

package attack

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"unsafe"

	"golang.org/x/sys/unix"
)

// victim is the process outside: "DIR SECRET NONCE victim-NONCE", and the secret once
// more in its environment. It says where it is to be found and lives until its standard
// input ends.
func victim(args []string) int {
	v := host{dir: args[0], secret: args[1], nonce: args[2]}
	v.t.PID = os.Getpid()
	if err := v.open(); err != nil {
		fmt.Fprintln(os.Stderr, "victim:", err)
		return 1
	}
	if err := json.NewEncoder(os.Stdout).Encode(v.t); err != nil {
		return 1
	}
	_, _ = os.Stdin.Read(make([]byte, 1))
	v.close()
	return 0
}

type host struct {
	dir, secret, nonce string
	t                  target
	shm, msg, sem      int
}

func (v *host) open() error {
	// Where Yama is on, a process says itself who may trace it.
	_ = unix.Prctl(0x59616d61, ^uintptr(0), 0, 0, 0) // PR_SET_PTRACER, PR_SET_PTRACER_ANY
	if _, err := unix.Setsid(); err != nil {
		return err
	}
	return steps(v.memory, v.listen, v.descriptors, v.ipc, v.pty)
}

// memory maps the secret, writable and from a file.
func (v *host) memory() error {
	b, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return err
	}
	copy(b, v.secret)
	v.t.Address = uint64(uintptr(unsafe.Pointer(&b[0])))
	if err := os.Chdir(v.dir); err != nil {
		return err
	}
	fd, err := unix.Open("victim-secret", unix.O_RDONLY, 0)
	if err == nil {
		_, err = unix.Mmap(fd, 0, 4096, unix.PROT_READ, unix.MAP_SHARED)
	}
	return err
}

func (v *host) listen() error {
	answer := func(l net.Listener) {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte(v.secret))
			c.Close()
		}
	}
	var plain net.ListenConfig
	plain.SetMultipathTCP(false) // such a listener is not in /proc/net/tcp
	v.t.Abstract = "@sandboxd-attack-" + v.nonce
	v.t.Datagram = v.t.Abstract + "-dgram"
	for _, at := range [][2]string{{"tcp4", "0.0.0.0:0"}, {"unix", v.t.Abstract}, {"unix", "socket"}, {"unix", "../ro/socket"}} {
		l, err := plain.Listen(context.Background(), at[0], at[1])
		if err != nil {
			return err
		}
		if a, ok := l.Addr().(*net.TCPAddr); ok {
			v.t.TCP = a.Port
		}
		go answer(l)
	}
	u, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	v.t.UDP = u.LocalAddr().(*net.UDPAddr).Port
	_, err = net.ListenPacket("unixgram", v.t.Datagram)
	return err
}

// descriptors gives this directory away to whoever asks.
func (v *host) descriptors() error {
	dir, err := os.Open(v.dir)
	if err != nil {
		return err
	}
	l, err := net.Listen("unix", v.t.Abstract+"-fd")
	if err != nil {
		return err
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _, _ = c.(*net.UnixConn).WriteMsgUnix([]byte("x"), unix.UnixRights(int(dir.Fd())), nil)
			c.Close()
		}
	}()
	return nil
}

// ipc makes what has a number or a name and is no file of the tree. /dev/shm and the
// queue are the world's by mode: only the namespace keeps anyone out.
func (v *host) ipc() error {
	key := 1 + os.Getpid()<<8
	v.t.Shm, v.t.Msg, v.t.Sem = key, key, key
	var err error
	if v.shm, err = unix.SysvShmGet(key, 4096, unix.IPC_CREAT|0o666); err != nil {
		return err
	}
	b, err := unix.SysvShmAttach(v.shm, 0, 0)
	if err != nil {
		return err
	}
	copy(b, v.secret)
	for _, x := range []struct {
		nr   uintptr
		to   *int
		args [3]uintptr
	}{{unix.SYS_MSGGET, &v.msg, [3]uintptr{uintptr(key), unix.IPC_CREAT | 0o666, 0}},
		{unix.SYS_SEMGET, &v.sem, [3]uintptr{uintptr(key), 1, unix.IPC_CREAT | 0o666}}} {
		id, err := call(x.nr, x.args[0], x.args[1], x.args[2], 0, 0, 0)
		if err != nil {
			return err
		}
		*x.to = int(id)
	}
	v.t.Queue = "sandboxd-attack-" + v.nonce
	name, err := unix.BytePtrFromString(v.t.Queue)
	if err != nil {
		return err
	}
	_, _ = call(unix.SYS_MQ_OPEN, uintptr(unsafe.Pointer(name)), unix.O_CREAT|unix.O_RDWR, 0o600, 0, 0, 0)
	v.t.Memory = filepath.Join("/dev/shm", v.t.Queue)
	return os.WriteFile(v.t.Memory, []byte(v.secret), 0o600)
}

func (v *host) pty() (err error) {
	v.t.PTY, err = openPTY()
	return err
}

// openPTY makes a pseudo-terminal that lasts as long as this process, and names its
// other end.
func openPTY() (string, error) {
	master, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return "", err
	}
	if err := unix.IoctlSetPointerInt(master, unix.TIOCSPTLCK, 0); err != nil {
		return "", err
	}
	n, err := unix.IoctlGetInt(master, unix.TIOCGPTN)
	return fmt.Sprintf("/dev/pts/%d", n), err
}

func (v *host) close() {
	_, _ = unix.SysvShmCtl(v.shm, unix.IPC_RMID, nil)
	_, _ = call(unix.SYS_MSGCTL, uintptr(v.msg), unix.IPC_RMID, 0, 0, 0, 0)
	_, _ = call(unix.SYS_SEMCTL, uintptr(v.sem), 0, unix.IPC_RMID, 0, 0, 0)
	if name, err := unix.BytePtrFromString(v.t.Queue); err == nil {
		_, _ = call(unix.SYS_MQ_UNLINK, uintptr(unsafe.Pointer(name)), 0, 0, 0, 0, 0)
	}
	_ = os.Remove(v.t.Memory)
}
