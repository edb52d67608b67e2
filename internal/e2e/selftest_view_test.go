//go:build linux

package e2e

import (
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"sandboxd/internal/testenv"
)

// mountsOfAHost makes a mount namespace as busy as a host's: mounts with strange names
// in the workspace, stacked ones, a bind of a part, and more of them all the time, all
// propagating (mount_namespaces(7)).
const mountsOfAHost = `
mount --make-rshared /
cd "$1"
mkdir -p "a b\\c" stacked part bound root none busy
mount -t tmpfs one "a b\\c"
mkdir "a b\\c/root" && echo secret >"a b\\c/root/.env"
mount -t tmpfs two stacked && mount -t tmpfs three stacked
mount --bind part bound
mount -t tmpfs -o mode=0755 four root && echo secret >root/.env && mkdir -p root/sub && mount -t tmpfs five root/sub
find . -exec chown "$2:$3" {} +
# They only come: bubblewrap itself gives up where one goes while it binds.
( n=0; while [ $n -lt 100 ]; do n=$((n + 1)); mkdir busy/$n; mount -t tmpfs six busy/$n; sleep 0.01; done ) &
busy=$!
trap 'kill $busy 2>/dev/null || :' EXIT
n=0
while [ $n -lt 8 ]; do
	n=$((n + 1))
	setpriv --reuid "$2" --regid "$3" --clear-groups "$4" run --report --workspace "$1" --rw "$1/root" \
		--ro "$1/bound" --protect "$1/root/.env" --protect "$1/a b\\c/root/.env" --protect "$1/none/x" $5 -- \
		sh -c 'cat "$1/root/.env" "$1/a b\\c/root/.env"; : >"$1/root/sub/new" && echo ran' sh "$1" 2>&1 || exit 1
done
`

// The comparison of mount tables takes nothing that the host does for a bubblewrap that
// adds mounts, in the strict view and with everything readable.
func TestSelfTestViewOnABusyHost(t *testing.T) {
	testenv.EachUser(t, func(t *testing.T, u testenv.User) {
		needBwrap(t, u)
		if testenv.Me().UID != 0 {
			testenv.Skip(t, "root", "mounting")
		}
		unshare := testenv.Tool(t, "unshare")
		testenv.Tool(t, "setpriv")
		for _, view := range []string{"--net off", "--ro / --scratch " + fixtureDir(t, u)} {
			cmd := exec.Command(unshare, "-m", "sh", "-ec", mountsOfAHost, "sh", fixtureDir(t, u),
				strconv.Itoa(u.UID), strconv.Itoa(u.GID), testenv.Binary(t), view)
			out, err := cmd.CombinedOutput()
			text := string(out)
			if err != nil || strings.Count(text, "ran\n") != 8 || strings.Count(text, " mounts:ro=") != 8 || strings.Contains(text, "secret") {
				t.Errorf("%s: %v\n%s", view, err, text)
			}
		}
	})
}
