//go:build linux

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sandboxd/internal/testenv"
	"sandboxd/protocol"
)

// lacking is a host that is made to lack something, in user and mount namespaces of
// its own.
type lacking struct {
	name       string
	setup      string // shell commands, with root's rights in those namespaces
	noLandlock bool
	degraded   bool
	says       map[string]string // tag of a skip, and what its reason holds
}

const (
	noUserns   = "echo 0 >/proc/sys/user/max_user_namespaces"
	coverProc  = "mount -t tmpfs none /proc/tty"
	saysUserns = "user.max_user_namespaces=0"
	saysProc   = "mount too revealing"
	saysNoLL   = "built without Landlock"
)

var lackingHosts = []lacking{
	{name: "nothing", setup: ":"},
	{name: "user namespaces", setup: noUserns, degraded: true,
		says: map[string]string{"bwrap": saysUserns, "mounts": "no view of its own"}},
	{name: "a /proc that may be mounted anew", setup: coverProc, degraded: true,
		says: map[string]string{"bwrap": saysProc, "mounts": "no view of its own"}},
	{name: "Landlock", setup: ":", noLandlock: true,
		says: map[string]string{"landlock": saysNoLL}},
	{name: "user namespaces and Landlock", setup: noUserns, noLandlock: true, degraded: true,
		says: map[string]string{"bwrap": saysUserns, "mounts": "no view of its own", "landlock": saysNoLL}},
	{name: "a fresh /proc and Landlock", setup: coverProc, noLandlock: true, degraded: true,
		says: map[string]string{"bwrap": saysProc, "mounts": "no view of its own", "landlock": saysNoLL}},
}

// helper is a helper on such a host.
func (l lacking) helper(t *testing.T, u testenv.User, args ...string) *exec.Cmd {
	t.Helper()
	argv := append([]string{testenv.Tool(t, "unshare"), "--user", "--map-root-user", "--mount", "--",
		"/bin/sh", "-c", l.setup + ` && exec "$@"`, "sh", testenv.Binary(t)}, args...)
	if !l.noLandlock {
		return exec.Command(argv[0], argv[1:]...)
	}
	argv = append([]string{"/proc/self/exe"}, argv...)
	return &exec.Cmd{Path: argv[0], Args: argv, Env: append(os.Environ(), roleEnv+"=nolandlock")}
}

// ownNamespaces skips where this user cannot have a user namespace to lack something in.
func ownNamespaces(t *testing.T, u testenv.User) {
	t.Helper()
	cmd := exec.Command(testenv.Tool(t, "unshare"), "--user", "--map-root-user", "--mount", "--", "/bin/true")
	if out, err := testenv.As(t, cmd, u).CombinedOutput(); err != nil {
		testenv.Skip(t, "userns", strings.TrimSpace(string(out)))
	}
}

// Whatever a host lacks, hello and every report say so with the reason, and
// --require-enforced refuses before the command starts. The host that lacks nothing is
// the control.
func TestCeilLackingHosts(t *testing.T) {
	testenv.EachUser(t, func(t *testing.T, u testenv.User) {
		ownNamespaces(t, u)
		for _, l := range lackingHosts {
			t.Run(l.name, func(t *testing.T) {
				m := jailed(t, u)
				l.refusesToServe(m)
				l.reports(m)
				l.refuses(m)
				l.doctor(m)
			})
		}
	})
}

// refusesToServe: with neither bubblewrap nor Landlock nothing is served unless that is
// asked for; else it is.
func (l lacking) refusesToServe(m mode) {
	m.t.Helper()
	c := m.spawnCmd(l.helper(m.t, m.u), m.policy())
	if !l.degraded || !l.noLandlock {
		c.greet()
		c.down()
		return
	}
	code := c.wait()
	if said := c.stderr.String(); code == 0 || !strings.Contains(said, "--allow-unenforced") ||
		!strings.Contains(said, l.says["bwrap"]) || !strings.Contains(said, l.says["landlock"]) {
		m.t.Errorf("exit %d, %s", code, said)
	}
}

func (l lacking) reports(m mode) {
	m.t.Helper()
	c := m.spawnCmd(l.helper(m.t, m.u, "--allow-unenforced"), m.policy())
	c.greet()
	for feature, want := range map[string]bool{"degraded": l.degraded, "bwrap": !l.degraded, "landlock": !l.noLandlock} {
		if slices.Contains(c.hello.Features, feature) != want {
			m.t.Errorf("hello: %s is %v: %q", feature, !want, c.hello.Features)
		}
	}
	r := c.sh(2, m.dir, "echo ran >witness")
	if _, err := os.Stat(filepath.Join(m.dir, "witness")); err != nil || r.exit.Degraded != l.degraded {
		m.t.Errorf("degraded %v, %v", r.exit.Degraded, err)
	}
	for _, tag := range []string{"bwrap", "mounts", "landlock"} {
		var applied bool
		var reasons []string
		for _, e := range r.exit.Enforcement {
			switch name, skipped := protocol.Layer(e); {
			case name == tag && skipped:
				reasons = append(reasons, e)
			case name == tag:
				applied = true
			}
		}
		want, missing := l.says[tag]
		all := strings.Join(reasons, "\n")
		if applied == missing || missing && !strings.Contains(all, want) {
			m.t.Errorf("%s: applied %v, %q, expected %q", tag, applied, all, want)
		}
	}
	c.down()
}

// doctor gives the same reasons to a person.
func (l lacking) doctor(m mode) {
	m.t.Helper()
	out, err := testenv.As(m.t, l.helper(m.t, m.u, "doctor"), m.u).Output()
	if (err != nil) != l.degraded {
		m.t.Errorf("doctor: %v", err)
	}
	for tag, found := range map[string]bool{"bwrap": !l.degraded, "landlock": !l.noLandlock} {
		_, after, there := strings.Cut(string(out), "\nmissing  "+tag)
		line, _, _ := strings.Cut(after, "\n")
		if there == found || there && !strings.Contains(line, l.says[tag]) {
			m.t.Errorf("doctor on %s: missing %v: %s", tag, there, line)
		}
	}
}

// refuses: Landlock is demanded only where the kernel has it (protocol.Required).
func (l lacking) refuses(m mode) {
	m.t.Helper()
	c := m.spawnCmd(l.helper(m.t, m.u, "--allow-unenforced", "--require-enforced"), m.policy())
	c.greet()
	c.start(2, m.dir, "sh", "-c", "echo ran >strict")
	r := c.collect(2)
	_, err := os.Stat(filepath.Join(m.dir, "strict"))
	switch {
	case l.degraded && (r.fail == nil || r.fail.Code != protocol.CodeRefused || err == nil || !strings.Contains(r.fail.Msg, "cannot enforce bwrap, mounts ")):
		m.t.Errorf("got %+v, %+v, the file: %v", r.exit, r.fail, err)
	case !l.degraded && (r.exit == nil || r.exit.Code != 0 || err != nil):
		m.t.Errorf("got %+v, %+v, the file: %v", r.exit, r.fail, err)
	}
	c.down()
}
