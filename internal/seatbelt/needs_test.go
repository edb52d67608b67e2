package seatbelt

import (
	"slices"
	"strings"
	"testing"

	"sandboxd/internal/host"
	"sandboxd/internal/plan"
	"sandboxd/internal/seatbelt/eval"
	"sandboxd/protocol"
)

func file(op, path string) eval.Query { return eval.Query{Op: op, Path: path} }

func lookup(name string) eval.Query { return eval.Query{Op: "mach-lookup", Name: name} }

// The needs of a tool are what it asks of the kernel, by its documentation and by what
// dyld and libsystem do before main.
var everyProgram = []eval.Query{
	{Op: "process-fork"},
	{Op: "sysctl-read", Name: "hw.ncpu"},
	{Op: "signal"},
	file("file-read-data", "/"),
	file("file-read-data", "/usr/lib/dyld"),
	file("file-map-executable", "/usr/lib/libSystem.B.dylib"),
	file("file-read-data", "/System/Library/dyld/dyld_shared_cache"),
	file("file-read-metadata", "/Users/u"),
	file("file-write-data", "/dev/null"),
	file("file-ioctl", "/dev/dtracehelper"),
	file("file-read-data", "/dev/fd/3"),
	file("file-read-data", "/private/etc/localtime"),
	file("file-read-metadata", "/etc"),
	file("file-read-data", "/private/var/db/timezone/zoneinfo"),
	lookup("com.apple.system.opendirectoryd.libinfo"),
}

var needs = map[string][]eval.Query{
	"git": {
		file("process-exec", "/usr/bin/git"), file("process-exec", "/bin/sh"), file("file-write-create", ws+"/.git/index.lock"),
		file("file-write-unlink", ws+"/.git/index.lock"), file("file-link", ws+"/.git/objects/tmp"), file("file-read-data", "/private/etc/gitconfig"),
		file("process-exec", "/Library/Developer/CommandLineTools/usr/bin/git"), file("file-read-data", "/dev/urandom"),
	},
	"python3": {
		file("process-exec", "/opt/homebrew/bin/python3"), {Op: "ipc-posix-sem"}, {Op: "ipc-posix-shm-read-data"}, {Op: "pseudo-tty"},
		file("file-read-data", "/dev/urandom"), {Op: "system-socket", Domain: "AF_UNIX"},
		{Op: "network-bind", Socket: "unix", Path: scratch + "/pymp/listener"}, {Op: "network-outbound", Socket: "unix", Path: scratch + "/pymp/listener"},
		{Op: "file-write-data", Path: "/dev/ttys004", Extension: "com.apple.sandbox.pty"},
	},
	"node": {
		file("process-exec", "/opt/homebrew/bin/node"), file("file-write-data", ws+"/node_modules/x"), {Op: "process-info-pidinfo"},
		{Op: "sysctl-read", Name: "kern.osproductversion"},
	},
	"clang": {
		file("process-exec", "/usr/bin/clang"), file("process-exec", "/Library/Developer/CommandLineTools/usr/bin/clang"),
		file("file-read-data", "/private/var/select/developer_dir"), file("file-read-data", "/private/var/db/xcode_select_link"),
		file("file-write-create", userTmp+"/clang-module-cache"), lookup("com.apple.bsd.dirhelper"),
	},
	"swift": {
		file("process-exec", "/usr/bin/swift"), file("file-write-create", userTmp+"/TemporaryDirectory.x"),
		lookup("com.apple.bsd.dirhelper"), {Op: "mach-host-info"}, file("file-map-executable", "/Library/Developer/CommandLineTools/usr/lib/swift/host/x.dylib"),
	},
}

func TestToolsHaveWhatTheyNeed(t *testing.T) {
	m := newMac(t, roots(ws), nil)
	e := read(t, m.render(t))
	for tool, list := range needs {
		for _, q := range append(slices.Clone(everyProgram), list...) {
			if yes, why := e.Why(q); !yes {
				t.Errorf("%s needs %+v, which %q denies", tool, q, why)
			}
		}
	}
	for _, q := range []eval.Query{ // what none of them needs
		lookup("com.apple.pasteboard.1"), lookup("com.apple.cfprefsd.agent"), lookup("com.apple.SecurityServer"), lookup("com.apple.tccd"),
		{Op: "signal", Foreign: true}, {Op: "process-info-pidinfo", Foreign: true}, {Op: "sysctl-read", Name: "kern.procargs2"},
		{Op: "mach-host-special-port-set"}, {Op: "system-fsctl"}, file("file-write-data", "/usr/bin/git"), file("file-link", "/usr/bin/git"),
		file("file-write-data", "/private/var/db/x"), file("process-exec", "/Users/u/Downloads/x"),
	} {
		if yes, why := e.Why(q); yes {
			t.Errorf("%+v is allowed by %q", q, why)
		}
	}
}

// Each entry says who needs it, and each of the five tools is somebody's reason.
func TestEveryEntryHasAReason(t *testing.T) {
	all := ""
	say := func(what, why string) {
		if why == "" {
			t.Errorf("%s has no reason", what)
		}
		all += why + "\n"
	}
	for _, s := range basics {
		say(s.op, s.why)
	}
	for _, s := range append(slices.Clone(lookups), netLookups...) {
		say(s.name, s.why)
	}
	for _, d := range devices {
		say(d.path, d.why)
	}
	for _, d := range plan.Base(host.Facts{OS: "darwin", UID: 501}) {
		say(d.Path, d.Why)
	}
	for tool := range needs {
		if !strings.Contains(all, tool) {
			t.Errorf("no entry is there for %s", tool)
		}
	}
}

// The private scratch of one execution is closed to another's profile.
func TestScratchIsPrivate(t *testing.T) {
	m := newMac(t, protocol.Policy{WritableRoots: []string{ws}}, nil)
	e := read(t, m.render(t))
	if !e.Write(scratch+"/x") || e.Read("/private/tmp/sandboxd-2/x") || e.Write("/private/tmp/x") {
		t.Error("the scratch is not writable, or another one is reachable")
	}
}
