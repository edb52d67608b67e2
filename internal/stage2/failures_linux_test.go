package stage2

import (
	"bytes"
	"debug/elf"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sandboxd/internal/host"
	"sandboxd/internal/landlock"
	"sandboxd/internal/stage2/spec"
	"sandboxd/internal/testenv"
)

func TestFailures(t *testing.T) {
	eachWorld(t, func(t *testing.T, w world) {
		if err := os.Mkdir(filepath.Join(w.dir, "directory"), 0o755); err != nil {
			t.Fatal(err)
		}
		plain := w.file(t, "plain", "#!/bin/sh\necho ran\n", 0o644)
		text := w.file(t, "text", "no program\n", 0o755)
		script := w.file(t, "script", "#!/no/such/interpreter -x\n", 0o755)
		binary := w.file(t, "elf", otherInterpreter(t), 0o755)
		fifo := filepath.Join(w.dir, "fifo")
		if err := unix.Mkfifo(fifo, 0o777); err != nil {
			t.Fatal(err)
		}
		for _, test := range []struct {
			name, step string
			errno      unix.Errno
			want       string
			change     func(*spec.Spec)
		}{
			{"not on PATH", spec.StepLookup, unix.ENOENT, `"no-such-program" not found in the jail`,
				func(s *spec.Spec) { s.Argv = []string{"no-such-program"} }},
			{"empty PATH", spec.StepLookup, unix.ENOENT, `"true" not found`,
				func(s *spec.Spec) { s.Path = nil }},
			{"no argv", spec.StepLookup, unix.ENOENT, "argv[0] is empty",
				func(s *spec.Spec) { s.Argv = nil }},
			{"missing path", spec.StepLookup, unix.ENOENT, "does not exist in the jail (ENOENT)",
				func(s *spec.Spec) { s.Argv = []string{w.dir + "/missing"} }},
			{"long missing path", spec.StepLookup, unix.ENOENT, `…`,
				func(s *spec.Spec) { s.Argv = []string{w.dir + strings.Repeat("/"+strings.Repeat("\x01", 250), 15)} }},
			{"long name on PATH", spec.StepLookup, unix.ENAMETOOLONG, "cannot stat",
				func(s *spec.Spec) { s.Argv = []string{strings.Repeat("\x01", 100000)} }},
			{"below a file", spec.StepLookup, unix.ENOTDIR, "(ENOTDIR)",
				func(s *spec.Spec) { s.Argv = []string{plain + "/x"} }},
			{"directory", spec.StepLookup, unix.EISDIR, "is a directory",
				func(s *spec.Spec) { s.Argv = []string{w.dir + "/directory"} }},
			{"directory on PATH", spec.StepLookup, unix.EISDIR, "is a directory",
				func(s *spec.Spec) { s.Argv, s.Path = []string{"directory"}, []string{w.dir} }},
			{"fifo", spec.StepLookup, unix.EACCES, "is not a regular file",
				func(s *spec.Spec) { s.Argv = []string{fifo} }},
			{"not executable", spec.StepLookup, unix.EACCES, "is not executable: mode 0644",
				func(s *spec.Spec) { s.Argv = []string{plain} }},
			{"not executable on PATH", spec.StepLookup, unix.EACCES, "is not executable: mode 0644",
				func(s *spec.Spec) { s.Argv, s.Path = []string{"plain"}, []string{"/usr/bin", w.dir} }},
			{"no #! line", spec.StepExec, unix.ENOEXEC, "has no #! line",
				func(s *spec.Spec) { s.Argv = []string{text} }},
			{"script's interpreter", spec.StepExec, unix.ENOENT, `its interpreter "/no/such/interpreter"`,
				func(s *spec.Spec) { s.Argv = []string{script} }},
			{"program's interpreter", spec.StepExec, unix.ENOENT, `its interpreter "/no`,
				func(s *spec.Spec) { s.Argv = []string{binary} }},
			{"long argument", spec.StepExec, unix.E2BIG, "E2BIG",
				func(s *spec.Spec) { s.Argv = []string{"true", strings.Repeat("x", 140000)} }},
			{"NUL in an argument", spec.StepExec, unix.EINVAL, "EINVAL",
				func(s *spec.Spec) { s.Argv = []string{"true", "a\x00b"} }},
			{"cwd missing", spec.StepChdir, unix.ENOENT, "no such file or directory (ENOENT)",
				func(s *spec.Spec) { s.Cwd = w.dir + "/missing" }},
			{"cwd a file", spec.StepChdir, unix.ENOTDIR, "(ENOTDIR)",
				func(s *spec.Spec) { s.Cwd = plain }},
			{"changed root", spec.StepVerify, 0, "was replaced meanwhile",
				func(s *spec.Spec) { s.Checks = []spec.Check{wrongRoot(w)} }},
			{"root gone", spec.StepVerify, unix.ENOENT, `writable_roots[1] "` + w.dir + `/missing" cannot be seen`,
				func(s *spec.Spec) {
					s.Checks = []spec.Check{{Path: w.dir + "/missing", What: spec.CheckRoot, List: "writable_roots[1]"}}
				}},
			{"device number", spec.StepVerify, 0, "is another device",
				func(s *spec.Spec) {
					s.Checks = []spec.Check{{Path: w.dir, What: spec.CheckMount, ID: idOf(w.dir), Rdev: 99, List: "mounts[0]"}}
				}},
			{"not masked", spec.StepVerify, 0, "is not masked: the host's inode shows",
				func(s *spec.Spec) {
					s.Checks = []spec.Check{{Path: plain, What: spec.CheckMask, ID: idOf(plain), List: "protected[0]"}}
				}},
			{"mask not read-only", spec.StepVerify, 0, "is not read-only",
				func(s *spec.Spec) {
					s.Checks = []spec.Check{{Path: w.dir, What: spec.CheckPlaceholder, List: "protected[0]"}}
				}},
			{"mask missing", spec.StepVerify, unix.ENOENT, "has no mask",
				func(s *spec.Spec) {
					s.Checks = []spec.Check{{Path: w.dir + "/missing", What: spec.CheckMask, List: "protected[0]"}}
				}},
			{"required layer", spec.StepRequire, 0, `"landlock" is required and not there: for the test`,
				func(s *spec.Spec) {
					s.Landlock = spec.Landlock{Reason: "for the test"}
					s.Require = []string{"bwrap", "landlock"}
				}},
		} {
			t.Run(test.name, func(t *testing.T) {
				s := w.spec("true")
				test.change(&s)
				f := w.run(t, s.Append(nil)).failure(t)
				if f.Step != test.step || f.Errno != uint64(test.errno) || !strings.Contains(f.Msg, test.want) {
					t.Errorf("got %+v\nwant %s, %d, %q", f, test.step, test.errno, test.want)
				}
				// What a broker makes an exit status of (PROTOCOL.md, "Error codes").
				unquoted := regexp.MustCompile(`"(\\.|[^"\\])*"`).ReplaceAllString(f.Msg, "")
				_, after, _ := strings.Cut(unquoted, "(")
				if name, _, _ := strings.Cut(after, ")"); (f.Step == spec.StepLookup || f.Step == spec.StepExec) && name != unix.ErrnoName(test.errno) {
					t.Errorf("the first parentheses hold %q: %s", name, f.Msg)
				}
			})
		}
		w.run(t, w.spec("true").Append(nil)).report(t) // the same without a change runs
	})
}

func checkRoot(w world) spec.Check {
	return spec.Check{Path: w.dir, What: spec.CheckRoot, ID: idOf(w.dir), List: "writable_roots[0]"}
}

func wrongRoot(w world) spec.Check {
	c := checkRoot(w)
	c.ID.Ino++
	return c
}

func idOf(path string) host.ID {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		panic(err)
	}
	return identity(&st)
}

// otherInterpreter is a dynamic program of this machine whose PT_INTERP leads nowhere.
func otherInterpreter(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("/bin/true")
	if err != nil {
		t.Fatal(err)
	}
	f, err := elf.NewFile(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			copy(b[p.Off:], "/no")
			return string(b)
		}
	}
	t.Fatal("/bin/true is static")
	return ""
}

// Two things are wrong in each; the earlier step answers.
func TestOrderOfSteps(t *testing.T) {
	w := newWorld(t, testenv.Me(), false)
	badCwd := func(s *spec.Spec) { s.Cwd = "/no/such/directory" }
	badName := func(s *spec.Spec) { s.Argv = []string{"no-such-program"} }
	badRoot := func(s *spec.Spec) { s.Checks = []spec.Check{wrongRoot(w)} }
	badNamespace := func(s *spec.Spec) { s.Namespaces = ownNamespaces("mnt") }
	badRule := func(s *spec.Spec) { s.Landlock.Rules = []spec.Rule{{Path: "/no/such", Access: spec.AccessRead}} }
	badRequire := func(s *spec.Spec) { s.Landlock, s.Require = spec.Landlock{Reason: "x"}, []string{"landlock"} }
	badExec := func(s *spec.Spec) { s.Argv = []string{"true", strings.Repeat("x", 140000)} }
	abi, _ := landlock.ABI()
	for _, test := range []struct {
		name, step    string
		first, second func(*spec.Spec)
	}{
		{"chdir before lookup", spec.StepChdir, badCwd, badName},
		{"lookup before verify", spec.StepLookup, badName, badRoot},
		{"namespaces before inodes", spec.StepNamespaces, badNamespace, badRoot},
		{"verify before landlock", spec.StepVerify, badRoot, badRule},
		{"landlock before exec", spec.StepLandlock, badRule, badExec},
		{"require before exec", spec.StepRequire, badRequire, badExec},
	} {
		if test.step == spec.StepLandlock && abi < 1 {
			continue
		}
		s := w.spec("true")
		test.first(&s)
		test.second(&s)
		if f := w.run(t, s.Append(nil)).failure(t); f.Step != test.step {
			t.Errorf("%s: got %+v", test.name, f)
		}
	}
}

func TestBadSpecification(t *testing.T) {
	w := newWorld(t, testenv.Me(), false)
	good := w.spec("true").Append(nil)
	for name, b := range map[string][]byte{
		"empty": {}, "cut": good[:len(good)-1], "more": append(good[:len(good):len(good)], 0xc0), "text": []byte("{}"),
	} {
		if f := w.run(t, b).failure(t); f.Step != spec.StepSpec {
			t.Errorf("%s: %+v", name, f)
		}
	}
	w.run(t, good).report(t)
}

func TestVerifiedMasksAndRoots(t *testing.T) {
	eachWorld(t, func(t *testing.T, w world) {
		if !w.jailed {
			return
		}
		secret := w.file(t, "secret", "s", 0o600)
		for _, name := range []string{"dir", "full"} {
			if err := os.Mkdir(filepath.Join(w.dir, name), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		dir, full := filepath.Join(w.dir, "dir"), filepath.Join(w.dir, "full")
		w.extra = []string{
			"--perms", "0444", "--tmpfs", dir, "--remount-ro", dir,
			"--ro-bind", "/usr/bin", full,
			"--ro-bind", w.file(t, "empty", "", 0o000), secret,
		}
		s := w.spec("true")
		s.Checks = []spec.Check{
			{Path: w.dir, What: spec.CheckRoot, ID: idOf(w.dir), List: "writable_roots[0]"},
			{Path: w.dir, What: spec.CheckPin, ID: idOf(w.dir), List: "pin[-1]"},
			{Path: "/dev/null", What: spec.CheckMount, ID: idOf("/dev/null"), Rdev: rdevOf("/dev/null"), List: "mounts[0]"},
			{Path: dir, What: spec.CheckMask, ID: idOf(dir), List: "protected[0]"},
			{Path: secret, What: spec.CheckMask, ID: idOf(secret), List: "protected[1]"},
		}
		report := w.run(t, s.Append(nil)).report(t)
		if report.Roots != 2 || report.Masks != 2 {
			t.Errorf("report %+v", report)
		}
		s.Checks = []spec.Check{{Path: full, What: spec.CheckMask, ID: idOf(full), List: "protected[0]"}}
		if f := w.run(t, s.Append(nil)).failure(t); f.Step != spec.StepVerify || !strings.Contains(f.Msg, "is not empty") {
			t.Errorf("a mask with content: %+v", f)
		}
	})
}

func rdevOf(path string) uint64 {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		panic(err)
	}
	return uint64(st.Rdev)
}

// A bubblewrap that makes fewer namespaces than asked for is noticed from inside.
func TestNamespaceNotMade(t *testing.T) {
	eachWorld(t, func(t *testing.T, w world) {
		for _, name := range []string{"mnt", "pid", "user", "ipc", "uts", "cgroup", "net"} {
			s := w.spec("true")
			s.Namespaces = ownNamespaces(name)
			r := w.run(t, s.Append(nil))
			if w.jailed {
				if got := r.report(t).Namespaces; len(got) != 1 || got[0] != name {
					t.Errorf("%s: reported %v", name, got)
				}
			} else if f := r.failure(t); f.Step != spec.StepNamespaces || !strings.Contains(f.Msg, "the "+name+" namespace is the helper's own") {
				t.Errorf("%s: %+v", name, f)
			}
		}
	})
}
