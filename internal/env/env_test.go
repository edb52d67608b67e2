package env

import (
	"slices"
	"strings"
	"testing"

	"sandboxd/internal/host"
)

// layout makes a host: a path ending in "/" is a directory, "a -> b" a link, the
// rest are files; parents come by themselves.
func layout(entries ...string) host.Layout {
	l := host.Layout{"/": {Kind: host.Dir, ID: host.ID{Dev: 1, Ino: 1}}}
	for _, e := range entries {
		n := host.Node{Kind: host.File}
		path, target, isLink := strings.Cut(e, " -> ")
		if isLink {
			n = host.Node{Kind: host.Link, Target: target}
		} else if strings.HasSuffix(path, "/") {
			path, n.Kind = strings.TrimSuffix(path, "/"), host.Dir
		}
		add(l, path, n)
	}
	return l
}

func add(l host.Layout, path string, n host.Node) {
	if _, known := l[path]; known {
		return
	}
	if path != "/" {
		add(l, host.Parent(path), host.Node{Kind: host.Dir})
	}
	n.ID = host.ID{Dev: 1, Ino: uint64(len(l) + 1)}
	l[path] = n
}

// usual is a merged-usr host with a workspace and a few links.
func usual(more ...string) host.Layout {
	return layout(append([]string{
		"/usr/bin/", "/usr/local/bin/", "/bin -> usr/bin", "/opt/tool/bin/", "/opt/a:b/", "/opt/file",
		"/w/bin/", "/w/link -> /opt/tool", "/opt/into-w -> /w/bin", "/opt/alias -> tool", "/home -> /var/home",
		"/var/home/u/bin/", "/tmp/x/", "/proc/self/cwd/", "/dev/shm/", "/loop -> loop", "/gone/",
	}, more...)...)
}

func get(r Result, name string) (string, bool) {
	for _, kv := range r.Env {
		if n, v, _ := strings.Cut(kv, "="); n == name {
			return v, true
		}
	}
	return "", false
}

const defaults = "/usr/local/bin:/usr/bin"

func TestPath(t *testing.T) {
	tests := []struct {
		name, request, helper string
		writable              []string
		scratch               string
		want                  string
	}{
		{"nothing asked for", "", "", nil, "", defaults},
		{"the request first, then the helper's, then the default", "/opt/tool/bin", "/var/home/u/bin", nil, "", "/opt/tool/bin:/var/home/u/bin:" + defaults},
		{"once each, the first place counts", "/usr/bin:/opt/tool/bin:/usr/bin", "/opt/tool/bin", nil, "", "/usr/bin:/opt/tool/bin:/usr/local/bin"},
		{"once each by the resolved form", "/bin:/usr/bin:/opt/alias/bin:/opt/tool/bin/", "", nil, "", "/usr/bin:/opt/tool/bin:/usr/local/bin"},
		{"relative and empty ones go", ":.:bin:~/bin::/opt/tool/bin:", "..", nil, "", "/opt/tool/bin:" + defaults},
		{"what is no directory goes", "/opt/file:/gone/x:/loop:/opt/file/x:/opt/tool/bin", "", nil, "", "/opt/tool/bin:" + defaults},
		{"what was not looked at goes", "/never/seen:/opt/tool/bin", "", nil, "", "/opt/tool/bin:" + defaults},
		{"doubled slashes and dots", "//opt//tool/./bin/", "", nil, "", "/opt/tool/bin:" + defaults},
		{"dots are walked, not cut", "/opt/alias/../tool/bin", "", nil, "", "/opt/tool/bin:" + defaults},
		{"a writable directory", "/w/bin:/opt/tool/bin", "", []string{"/w/bin"}, "", "/opt/tool/bin:" + defaults},
		{"below a writable directory", "/w/bin:/opt/tool/bin", "", []string{"/w"}, "", "/opt/tool/bin:" + defaults},
		{"one that is not writable stays", "/w/bin", "", []string{"/w/b", "/w/bin2", "/w/bin/file"}, "", "/w/bin:" + defaults},
		{"a link into a writable directory", "/opt/into-w:/opt/tool/bin", "", []string{"/w"}, "", "/opt/tool/bin:" + defaults},
		{"a link in a writable directory", "/w/link/bin:/opt/tool/bin", "", []string{"/w"}, "", "/opt/tool/bin:" + defaults},
		{"the same link where nothing writes", "/w/link/bin", "", nil, "", "/opt/tool/bin:" + defaults},
		{"writable by another spelling", "/home/u/bin", "", []string{"/var/home/u"}, "", defaults},
		{"the helper's are judged too", "", "/w/bin", []string{"/w"}, "", defaults},
		{"the default is judged too", "/opt/tool/bin", "", []string{"/usr/local"}, "", "/opt/tool/bin:/usr/bin"},
		{"the scratch is writable", "/tmp/x", "", nil, "/tmp", defaults},
		{"without a scratch /tmp is the caller's to name", "/tmp/x", "", nil, "", "/tmp/x:" + defaults},
		{"what each jail makes anew", "/proc/self/cwd:/dev/shm:/proc:/dev", "", nil, "", defaults},
		{"a colon that a link brings in", "/opt/colon:/opt/tool/bin", "", nil, "", "/opt/tool/bin:" + defaults},
		{"a writable / leaves the rest to the view", "/opt/tool/bin", "", []string{"/"}, "", "/opt/tool/bin:" + defaults},
		{"/ itself under a writable /", "/:/opt/tool/bin", "", []string{"/"}, "", "/opt/tool/bin:" + defaults},
		{"nothing left", "/w/bin", "", []string{"/usr", "/w"}, "", NoPath},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := Build(Input{Allow: []string{"PATH"}, Request: map[string]string{"PATH": tt.request}, HelperPath: tt.helper,
				Layout: usual("/opt/colon -> /opt/a:b"), Writable: tt.writable, Scratch: tt.scratch})
			got, _ := get(r, "PATH")
			if got != tt.want {
				t.Errorf("got  %s\nwant %s\ndropped %+v", got, tt.want, r.Dropped)
			}
			if joined := strings.Join(r.Path, ":"); joined != got && got != NoPath {
				t.Errorf("the look-up list is %s, PATH is %s", joined, got)
			}
		})
	}
}

func TestPathByInode(t *testing.T) {
	l := usual("/mnt/again/bin/")
	n := l["/mnt/again"]
	n.ID = l["/w"].ID // a bind mount of /w
	l["/mnt/again"] = n
	in := Input{Allow: []string{"PATH"}, Request: map[string]string{"PATH": "/mnt/again/bin"}, Layout: l}
	if got, _ := get(Build(in), "PATH"); got != "/mnt/again/bin:"+defaults {
		t.Fatalf("nothing writes, got %s", got)
	}
	in.Writable = []string{"/w"}
	if got, _ := get(Build(in), "PATH"); got != defaults {
		t.Errorf("another name of a writable directory stays: %s", got)
	}
}

func TestPathFollowsTheView(t *testing.T) {
	view := func(path string) (bool, bool) { return !host.Beneath(path, "/opt"), path == "/var/home/u/bin" }
	r := Build(Input{Allow: []string{"PATH"}, Layout: usual(), View: view,
		Request: map[string]string{"PATH": "/opt/tool/bin:/var/home/u/bin:/w/bin"}})
	if got, _ := get(r, "PATH"); got != "/w/bin:"+defaults {
		t.Errorf("got %s", got)
	}
	if len(r.Dropped) != 2 || r.Dropped[0].Dir != "/opt/tool/bin" || r.Dropped[1].Reason != "the jail can write it" {
		t.Errorf("dropped: %+v", r.Dropped)
	}
}

func TestWithoutPathTheDefaultIsLookedUp(t *testing.T) {
	r := Build(Input{Request: map[string]string{"PATH": "/opt/tool/bin"}, HelperPath: "/w/bin", Layout: usual(), Writable: []string{"/usr/local/bin"}})
	if len(r.Env) != 0 || !slices.Equal(r.Path, []string{"/usr/bin"}) {
		t.Errorf("environment %q, look-up list %q", r.Env, r.Path)
	}
}

func TestPathIsBounded(t *testing.T) {
	long := strings.Repeat("/nowhere:", 5*maxDirs) + "/opt/tool/bin"
	r := Build(Input{Allow: []string{"PATH"}, Request: map[string]string{"PATH": long}, Layout: usual()})
	if got, _ := get(r, "PATH"); got != defaults {
		t.Errorf("got %s", got)
	}
	if last := r.Dropped[maxDirs]; !strings.Contains(last.Reason, "more than 1024") {
		t.Errorf("got %+v", last)
	}
}

func TestNames(t *testing.T) {
	tests := []struct {
		name    string
		allow   []string
		request map[string]string
		scratch string
		want    []string
	}{
		{"only what is allowed", []string{"A"}, map[string]string{"A": "1", "B": "2", "a": "3"}, "", []string{"A=1"}},
		{"an allowed name that nobody sent", []string{"A"}, nil, "", nil},
		{"an empty value", []string{"A"}, map[string]string{"A": ""}, "", []string{"A="}},
		{"values as they are", []string{"A"}, map[string]string{"A": "=\n x"}, "", []string{"A==\n x"}},
		{"names that load code, allowed", []string{"LD_PRELOAD", "GODEBUG"}, map[string]string{"LD_PRELOAD": "/x.so", "GODEBUG": "y"}, "", []string{"GODEBUG=y", "LD_PRELOAD=/x.so"}},
		{"names that load code, not allowed", []string{"A"}, map[string]string{"A": "1", "LD_PRELOAD": "/x.so", "BASH_ENV": "/y"}, "", []string{"A=1"}},
		{"a NUL in a value", []string{"A", "B"}, map[string]string{"A": "x\x00y", "B": "1"}, "", []string{"B=1"}},
		{"names no environment can hold", []string{"", "A=B", "C"}, map[string]string{"": "1", "A=B": "2", "C": "3"}, "", []string{"C=3"}},
		{"an allowed name twice", []string{"A", "A"}, map[string]string{"A": "1"}, "", []string{"A=1"}},
		{"sorted", []string{"B", "A", "A1"}, map[string]string{"B": "", "A": "", "A1": ""}, "", []string{"A1=", "A=", "B="}},

		{"the scratch's name", []string{ScratchName}, nil, "/s", []string{ScratchName + "=/s"}},
		{"the caller's is replaced", []string{ScratchName}, map[string]string{ScratchName: "/evil"}, "/s", []string{ScratchName + "=/s"}},
		{"the caller's goes without a scratch", []string{ScratchName}, map[string]string{ScratchName: "/evil"}, "", nil},
		{"the scratch's name is not allowed", []string{"A"}, map[string]string{ScratchName: "/evil"}, "/s", nil},

		{"LANG", []string{"LANG"}, nil, "", []string{"LANG=C.UTF-8"}},
		{"LANG, empty", []string{"LANG"}, map[string]string{"LANG": ""}, "", []string{"LANG=C.UTF-8"}},
		{"LANG, sent", []string{"LANG"}, map[string]string{"LANG": "de"}, "", []string{"LANG=de"}},
		{"LC_ALL is enough", []string{"LANG", "LC_ALL"}, map[string]string{"LC_ALL": "C"}, "", []string{"LC_ALL=C"}},
		{"LC_CTYPE is enough", []string{"LANG", "LC_CTYPE"}, map[string]string{"LC_CTYPE": "C"}, "", []string{"LC_CTYPE=C"}},
		{"LC_ALL that was dropped is none", []string{"LANG"}, map[string]string{"LC_ALL": "C"}, "", []string{"LANG=C.UTF-8"}},
		{"LANG is not allowed", []string{"LC_ALL"}, nil, "", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := Build(Input{Allow: tt.allow, Request: tt.request, Layout: usual(), Scratch: tt.scratch})
			if !slices.Equal(r.Env, tt.want) {
				t.Errorf("got %q, want %q", r.Env, tt.want)
			}
		})
	}
}

func TestDroppedHoldsNoValues(t *testing.T) {
	r := Build(Input{Allow: []string{"B"}, Layout: usual(),
		Request: map[string]string{"A": "secret", "B": "secret\x00"}})
	if len(r.Dropped) != 2 || r.Dropped[0].Name != "A" || r.Dropped[1].Name != "B" {
		t.Fatalf("got %+v", r.Dropped)
	}
	for _, d := range r.Dropped {
		if strings.Contains(d.Name+d.Dir+d.Reason, "secret") {
			t.Errorf("a value leaks: %+v", d)
		}
	}
}

func TestTMPDIR(t *testing.T) {
	view := func(path string) (bool, bool) {
		return true, host.Beneath(path, "/tmp") || host.Beneath(path, "/w") || host.Beneath(path, "/var/home/u")
	}
	tests := []struct {
		name     string
		request  map[string]string
		scratch  string
		tmpfs    bool
		writable []string
		want     string
		set      bool
	}{
		{"absent", nil, "/tmp", true, nil, "/tmp", true},
		{"absent without a scratch", nil, "", false, nil, "", false},
		{"empty", map[string]string{"TMPDIR": ""}, "/tmp", true, nil, "/tmp", true},
		{"writable in the view", map[string]string{"TMPDIR": "/w/bin/"}, "/tmp", true, nil, "/w/bin/", true},
		{"read-only in the view", map[string]string{"TMPDIR": "/opt/tool"}, "/tmp", true, nil, "/tmp", true},
		{"read-only without a scratch", map[string]string{"TMPDIR": "/opt/tool"}, "", false, nil, "/opt/tool", true},
		{"missing", map[string]string{"TMPDIR": "/w/none"}, "/tmp", true, nil, "/tmp", true},
		{"relative", map[string]string{"TMPDIR": "w"}, "/tmp", true, nil, "/tmp", true},
		{"the tmpfs itself", map[string]string{"TMPDIR": "/tmp/"}, "/tmp", true, nil, "/tmp/", true},
		{"a directory that the tmpfs hides", map[string]string{"TMPDIR": "/tmp/x"}, "/tmp", true, []string{"/tmp", "/"}, "/tmp", true},
		{"a root below the tmpfs", map[string]string{"TMPDIR": "/tmp/x"}, "/tmp", true, []string{"/tmp", "/tmp/x"}, "/tmp/x", true},
		{"a directory of a host scratch", map[string]string{"TMPDIR": "/tmp/x"}, "/tmp", false, nil, "/tmp/x", true},
		{"a scratch that is not there yet", map[string]string{"TMPDIR": "/private/s"}, "/private/s", false, nil, "/private/s", true},
		{"through a link", map[string]string{"TMPDIR": "/home/u"}, "/tmp", true, nil, "/var/home/u", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l := usual("/w/none/")
			l["/w/none"] = host.Node{Kind: host.Missing}
			in := Input{Allow: []string{"TMPDIR"}, Request: tt.request, Layout: l, View: view,
				Scratch: tt.scratch, Tmpfs: tt.tmpfs, Writable: tt.writable}
			got, set := get(Build(in), "TMPDIR")
			if got != tt.want || set != tt.set {
				t.Errorf("got %q %v, want %q %v", got, set, tt.want, tt.set)
			}
			in.Allow = []string{"A"}
			if _, set := get(Build(in), "TMPDIR"); set {
				t.Error("it is set without being allowed")
			}
		})
	}
	r := Build(Input{Allow: []string{"TMPDIR"}, Request: map[string]string{"TMPDIR": "/home/u"}, Layout: usual(), Scratch: "/tmp"})
	if got, _ := get(r, "TMPDIR"); got != "/home/u" {
		t.Errorf("without a jail the spelling stays, got %s", got)
	}
}

func TestDirs(t *testing.T) {
	got := Dirs(map[string]string{"PATH": "/b//c/:rel:/usr/bin:/x/l/../y:a\x00", "TMPDIR": "/t/"}, "/b/c:/h")
	want := []string{"/b/c", "/usr/bin", "/x/l", "/x/y", "/h", "/usr/local/bin", "/bin", "/t"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := Dirs(nil, ""); !slices.Equal(got, strings.Split(DefaultPath, ":")) {
		t.Errorf("got %q", got)
	}
}

// What is longer than the kernel takes is not looked at, and a look at what is as long
// as it takes stays one: a path of a million parts must not keep the helper busy.
func TestLongPathsAreNotLookedAt(t *testing.T) {
	fits, over := strings.Repeat("/x", 2047), strings.Repeat("/x", 1<<20)
	got := Dirs(map[string]string{"PATH": fits + ":" + over, "TMPDIR": over}, over)
	if !slices.Contains(got, fits) {
		t.Errorf("a path of %d bytes is not looked at", len(fits))
	}
	for _, path := range got {
		if len(path) > 4095 {
			t.Errorf("a path of %d bytes is looked at", len(path))
		}
	}
	if got := Dirs(map[string]string{"PATH": strings.Repeat(fits+":", 40) + "/behind"}, ""); slices.Contains(got, "/behind") {
		t.Error("more of PATH is looked at than an execve could pass on")
	}
	r := Build(Input{Allow: []string{"PATH", "TMPDIR"}, Request: map[string]string{"PATH": over + ":/usr/bin", "TMPDIR": over}, Layout: usual()})
	if slices.Contains(r.Path, over) || !slices.Contains(r.Path, "/usr/bin") {
		t.Errorf("PATH has %d directories", len(r.Path))
	}
}
