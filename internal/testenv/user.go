package testenv

import (
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"testing"
)

const (
	// UserName is the ordinary user that scripts/setup creates for the tests.
	UserName = "sandboxd-test"
	// FallbackID is its uid and gid where nobody has created it: such a process works,
	// but has no entry in /etc/passwd.
	FallbackID = 64198
)

// User is who a process runs as.
type User struct {
	Name     string
	UID, GID int
	Home     string
}

// Me is the user of the test process.
func Me() User {
	u := User{Name: "user", UID: os.Getuid(), GID: os.Getgid(), Home: os.Getenv("HOME")}
	if u.UID == 0 {
		u.Name = "root"
	}
	return u
}

// Ordinary returns a user without privileges: the test user for root, the caller
// itself otherwise. Its home is a fresh directory.
func Ordinary(tb testing.TB) User {
	tb.Helper()
	u := Me()
	if u.UID == 0 {
		u = testUser()
	}
	u.Home = TempDir(tb, u)
	return u
}

func testUser() User {
	u := User{Name: "user", UID: FallbackID, GID: FallbackID}
	if found, err := user.Lookup(UserName); err == nil {
		uid, err1 := strconv.Atoi(found.Uid)
		gid, err2 := strconv.Atoi(found.Gid)
		if err1 == nil && err2 == nil && uid != 0 {
			u.UID, u.GID = uid, gid
		}
	}
	return u
}

// EachUser runs f as a subtest for every user whom this process can run commands
// as: root and the test user for root, else the caller alone.
func EachUser(t *testing.T, f func(t *testing.T, u User)) {
	t.Helper()
	if os.Getuid() == 0 {
		t.Run("root", func(t *testing.T) {
			u := Me()
			u.Home = TempDir(t, u)
			f(t, u)
		})
	}
	t.Run("user", func(t *testing.T) { f(t, Ordinary(t)) })
}

// As makes cmd run as u, with u's home. Call it after cmd.Env is set, if at all.
func As(tb testing.TB, cmd *exec.Cmd, u User) *exec.Cmd {
	tb.Helper()
	if cmd.Env == nil {
		cmd.Env = os.Environ()
	}
	cmd.Env = append(cmd.Env, "HOME="+u.Home, "XDG_CACHE_HOME="+u.Home+"/.cache", "XDG_CONFIG_HOME="+u.Home+"/.config")
	if u.UID != os.Getuid() {
		setCredential(cmd, u)
	}
	return cmd
}

// AsUser makes cmd run as the ordinary user, whom it returns.
func AsUser(tb testing.TB, cmd *exec.Cmd) User {
	tb.Helper()
	u := Ordinary(tb)
	As(tb, cmd, u)
	return u
}
