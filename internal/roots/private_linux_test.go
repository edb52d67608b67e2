package roots

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandboxd/internal/testenv"
)

// What others cannot read and root can is found, the topmost of it, and looked for
// again when the answer is old.
func TestPrivate(t *testing.T) {
	if os.Getuid() != 0 {
		testenv.Skip(t, "root", "files of root's are looked for")
	}
	top := t.TempDir()
	put := func(rel string, mode uint32, uid, gid int) {
		at := filepath.Join(top, rel)
		ok(t, os.MkdirAll(filepath.Dir(at), 0o755))
		ok(t, os.WriteFile(at, []byte("x"), 0o600))
		ok(t, os.Lchown(at, uid, gid))
		ok(t, unix.Chmod(at, mode))
	}
	put("public", 0o644, 0, 0)
	put("own", 0o600, 0, 0)
	put("group", 0o640, 77, 0)
	put("another's", 0o600, 77, 77) // nor can root's command read it, without capabilities
	put("nobody's", 0o000, 0, 0)
	put("deep/dir/key", 0o640, 0, 77)
	put("shut/a", 0o644, 0, 0)
	put("shut/b", 0o600, 0, 0)
	ok(t, os.Chmod(top+"/shut", 0o700))
	put("walked/in", 0o600, 0, 0)
	ok(t, os.Chmod(top+"/walked", 0o711)) // its files can be guessed
	for i := range crowd + 1 {
		put(fmt.Sprintf("many/%d", i), 0o600, 0, 0)
	}
	ok(t, os.WriteFile(top+"/empty", nil, 0o600))
	ok(t, os.Symlink("own", top+"/link"))
	var p Private
	want := []string{"deep/dir/key", "group", "many", "own", "shut", "walked/in"}
	for i, name := range want {
		want[i] = filepath.Join(top, name)
	}
	if got, all, err := p.Below([]string{top, top + "/none"}); err != nil || !all || !slices.Equal(got, want) {
		t.Errorf("%v, %v: %q", all, err, got)
	}
	// What comes is found at once where it is heard of, else when the answer is old; what
	// is only closed later on.
	deaf := true
	again := func(age time.Duration) (found bool) {
		p.at = time.Now().Add(-age - time.Millisecond)
		p.checked = p.at
		if deaf {
			p.notice.end()
		}
		got, _, _ := p.Below([]string{top})
		return len(got) > len(want)
	}
	if again(privateAge) {
		t.Error("found without a change")
	}
	if put("later", 0o600, 0, 0); again(0) {
		t.Error("found at once, which nobody can who does not hear of it")
	}
	ok(t, os.Remove(top+"/later"))
	again(privateAge)
	for _, deaf = range []bool{true, false} {
		age := privateAge
		if !deaf {
			again(surelyAge)
			age = 0
		}
		for what, change := range map[string]func(){
			"a file that came": func() { put("later", 0o600, 0, 0) },
			"one deep below":   func() { put("deep/dir/later", 0o600, 0, 0) },
			"one moved there": func() {
				ok(t, os.WriteFile(top+"/deep/x", []byte("x"), 0o600))
				ok(t, os.Rename(top+"/deep/x", top+"/later"))
			},
			"one that was still empty": func() { ok(t, os.WriteFile(top+"/empty", []byte("x"), 0o600)) },
			"a directory":              func() { ok(t, os.Mkdir(top+"/later", 0o700)) },
			"one that was closed": func() {
				ok(t, os.Mkdir(top+"/closed", 0o755))
				again(age)
				ok(t, os.Chmod(top+"/closed", 0o700))
			},
		} {
			change()
			if !again(age) {
				t.Errorf("not found: %s", what)
			}
			for _, name := range []string{"later", "deep/dir/later", "closed"} {
				ok(t, os.RemoveAll(filepath.Join(top, name)))
			}
			ok(t, os.Remove(top+"/empty"))
			ok(t, os.WriteFile(top+"/empty", nil, 0o600))
			if again(privateAge) {
				t.Errorf("still there: %s", what)
			}
		}
		ok(t, os.Chmod(top+"/public", 0o600))
		if found := again(privateAge); found == deaf || !again(surelyAge) {
			t.Errorf("deaf: %v: a file that everybody could read is looked at again too soon or too late", deaf)
		}
		ok(t, os.Chmod(top+"/public", 0o644))
		again(surelyAge)
	}
}

// A helper that is out of descriptors has not found that there is nothing.
// More than is masked is said, and is not where a crowded directory is masked itself.
func TestPrivateIsBounded(t *testing.T) {
	if os.Getuid() != 0 {
		testenv.Skip(t, "root", "files of root's are looked for")
	}
	top := t.TempDir()
	fill := func(dir string, n int) {
		ok(t, os.MkdirAll(dir, 0o755))
		for i := range n {
			ok(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("f%03d", i)), []byte("x"), 0o600))
		}
	}
	fill(top, maxPrivate-1)
	fill(top+"/crowded", maxPrivate+1)
	var p Private
	found, all, err := p.Below([]string{top})
	if err != nil || !all || len(found) != maxPrivate || found[0] != top+"/crowded" {
		t.Errorf("%d places, all %v, %v; the first is %q", len(found), all, err, found[0])
	}
	fill(top, maxPrivate)
	p = Private{}
	found, all, err = p.Below([]string{top})
	if last := fmt.Sprintf("%s/f%03d", top, maxPrivate-2); err != nil || all || len(found) != maxPrivate || found[maxPrivate-1] != last {
		t.Errorf("%d places, all %v, %v; the last is %q, want %q", len(found), all, err, found[len(found)-1], last)
	}
}

func TestPrivateOutOfDescriptors(t *testing.T) {
	top := t.TempDir()
	ok(t, os.Mkdir(top+"/below", 0o755))
	var was unix.Rlimit
	ok(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &was))
	probe, err := unix.Open("/", unix.O_PATH|unix.O_CLOEXEC, 0)
	ok(t, err)
	ok(t, unix.Close(probe))
	for _, free := range []int{0, 1} { // for top, and for what is below it
		var p Private
		ok(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: uint64(probe + free), Max: was.Max}))
		_, _, err = p.Below([]string{top})
		ok(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &was))
		if !short(err) {
			t.Errorf("with %d free: %v", free, err)
		}
		if _, all, err := p.Below([]string{top}); !all || err != nil {
			t.Errorf("afterwards, with %d free: %v, %v", free, all, err)
		}
	}
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
