package plan

import (
	"strconv"
	"strings"

	"sandboxd/internal/host"
)

// Place is a path that is hidden where a broad grant would show it.
type Place struct {
	Path string // "{uid}" stands for the caller's uid
	Why  string
}

// ServicePlaces are where the user's own services listen. A read-only view does
// not stop a connect(2), so a view that shows them masks them, unless the policy
// names them.
var ServicePlaces = []Place{
	{"/run/user/{uid}", "the session bus, the keyring, ssh and gpg agents, audio and display sockets"},
	{"/run/dbus", "the system bus"},
	{"/run/systemd/private", "the service manager"},
	{"/run/docker.sock", "the docker daemon, which hands out the host"},
	{"/run/containerd/containerd.sock", "containerd, which hands out the host"},
	{"/run/podman/podman.sock", "podman, which hands out the host"},
	{"/run/libvirt", "virtual machines with the host's devices"},
	{"/run/crio/crio.sock", "cri-o, which hands out the host"},
	{"/var/run/docker.sock", "the docker daemon, where /var/run is no link"},
	{"/run/k3s/containerd/containerd.sock", "containerd, which hands out the host"},
	{"/run/buildkit/buildkitd.sock", "buildkit, which runs commands outside"},
	{"/run/snapd.socket", "snapd, which installs software"},
	{"/var/snap/lxd/common/lxd/unix.socket", "LXD, which hands out the host"},
	{"/var/lib/lxd/unix.socket", "LXD, which hands out the host"},
	{"/var/lib/incus/unix.socket", "Incus, which hands out the host"},
	{"/var/lib/incus/unix.socket.user", "Incus, which runs virtual machines and containers"},
	{"/run/screen", "screen, which runs commands outside"},
	{"/tmp/.X11-unix", "the display server: key strokes and screen contents"},
	{"/tmp/tmux-{uid}", "tmux, which runs commands outside"},
	{"/tmp/screens", "screen, which runs commands outside"},
	{"/tmp/zellij-{uid}", "zellij, which runs commands outside"},
	{"/tmp/emacs{uid}", "Emacs's server, which runs what it is told"},
}

// SecretPlaces are secrets that file modes hide from everybody but root; the
// command of a root caller keeps the host's uid 0, so for it they are masked.
var SecretPlaces = []Place{
	{"/etc/shadow", "password hashes"},
	{"/etc/shadow-", "password hashes, previous version"},
	{"/etc/gshadow", "group password hashes"},
	{"/etc/gshadow-", "group password hashes, previous version"},
	{"/etc/sudoers", "who may become root"},
	{"/etc/sudoers.d", "who may become root"},
	{"/etc/ssl/private", "private keys"},
	{"/etc/ssh/ssh_host_key", "host key"},
	{"/etc/ssh/ssh_host_dsa_key", "host key"},
	{"/etc/ssh/ssh_host_ecdsa_key", "host key"},
	{"/etc/ssh/ssh_host_ed25519_key", "host key"},
	{"/etc/ssh/ssh_host_rsa_key", "host key"},
	{"/etc/NetworkManager/system-connections", "network passwords"},
	{"/etc/wireguard", "private keys"},
	{"/etc/krb5.keytab", "the host's Kerberos keys"},
	{"/etc/security/opasswd", "old password hashes"},
	{"/proc/keys", "the kernel's key rings"},
	{"/proc/kpageflags", "the use of every page of memory"},
	{"/proc/kpagecount", "the use of every page of memory"},
	{"/proc/kpagecgroup", "the use of every page of memory"},
	{"/proc/slabinfo", "the kernel's memory"},
	{"/proc/vmallocinfo", "the kernel's memory, with addresses"},
	{"/proc/pagetypeinfo", "the kernel's memory"},
	{"/proc/allocinfo", "the kernel's memory"},
	{"/proc/timer_list", "the timers of every process, with addresses"},
	{"/proc/latency_stats", "what every process waits for"},
	{"/proc/sched_debug", "every process"},
	{"/etc/master.passwd", "password hashes (macOS)"},
	{"/private/var/db/dslocal", "password hashes of the local accounts (macOS)"},
	{"/private/var/db/SystemKey", "the key of the system's keychain (macOS)"},
	{"/private/var/db/krb5kdc", "Kerberos keys (macOS)"},
	{"/private/var/db/sudo", "who has just become root (macOS)"},
}

// expand puts the caller's uid into a place.
func (p Place) expand(f host.Facts) string {
	return strings.ReplaceAll(p.Path, "{uid}", strconv.Itoa(f.UID))
}

// StandIn is a missing protected path whose readers fail on a directory in its
// place, and what it gets instead.
type StandIn struct {
	Name    string // last components, or "~/NAME" for one in HOME
	Content string
	Perms   uint32
	Why     string
}

// StandIns are the exceptions to "an empty directory keeps a missing path away".
var StandIns = []StandIn{
	// Also in a bare repository and in those of submodules, which have other names.
	{"commondir", "./", 0o444, "git refuses to run with a directory here; \"./\" names the git directory itself and is harmless if left. Without the slash libgit2 finds nothing in a bare repository: cargo makes its clones anew"},
	{"config.worktree", "", 0o444, "git dies on a directory here where extensions.worktreeConfig is set; an empty file says nothing"},
	{"~/.gitconfig", "", 0, "git reads it on every command and dies on a directory"},
}

// standIn finds the exception for a canonical path.
func standIn(path, home string) (StandIn, bool) {
	for _, s := range StandIns {
		if name, inHome := strings.CutPrefix(s.Name, "~/"); inHome {
			if home != "" && path == host.Join(home, name) {
				return s, true
			}
		} else if strings.HasSuffix(path, "/"+s.Name) {
			return s, true
		}
	}
	return StandIn{}, false
}
