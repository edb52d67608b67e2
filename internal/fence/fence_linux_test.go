package fence

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sandboxd/internal/testenv"
	"sandboxd/protocol"
)

// place is a directory outside /tmp, where no link is ever followed, with a home
// and a workspace in it.
func place(t *testing.T) string {
	t.Helper()
	dir := testenv.OutsideTmp(t)
	dirs(t, dir, "home", "ws")
	return dir
}

func dirs(t *testing.T, top string, rels ...string) {
	t.Helper()
	for _, rel := range rels {
		if err := os.MkdirAll(filepath.Join(top, rel), 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

func link(t *testing.T, target, at string) {
	t.Helper()
	if err := os.Symlink(target, at); err != nil {
		t.Fatal(err)
	}
}

// input has the variables as NAME=VALUE; HOME is top/home unless one says otherwise.
func input(top string, vars ...string) Input {
	env := map[string]string{"HOME": top + "/home"}
	for _, v := range vars {
		name, value, set := strings.Cut(v, "=")
		if env[name] = value; !set {
			delete(env, name)
		}
	}
	return Input{Workspace: top + "/ws", Guard: true, Env: func(name string) (string, bool) { v, ok := env[name]; return v, ok }}
}

func TestCandidates(t *testing.T) {
	cases := []struct {
		name   string
		vars   []string
		make   []string
		links  [][2]string // target, at; both below the place
		grants []string    // below the place, beside the workspace
		note   string      // part of the only note, "" for none
	}{
		{"defaults", nil, []string{"home/go/pkg/mod", "home/go/src", "home/.cache/pip", "home/.cargo/registry", "home/.cargo/bin", "home/.m2/repository", "home/.gradle/caches", "home/.gradle/init.d"}, nil,
			[]string{"home/go/pkg/mod", "home/.cargo/registry", "home/.cache/pip", "home/.m2/repository", "home/.gradle/caches"}, ""},
		{"nothing there", nil, nil, nil, nil, ""},
		{"a variable replaces the default", []string{"GOCACHE=@/fast/go"}, []string{"fast/go", "home/.cache/go-build"}, nil, []string{"fast/go"}, ""},
		{"an empty one does not", []string{"GOCACHE="}, []string{"home/.cache/go-build"}, nil, []string{"home/.cache/go-build"}, ""},
		{"a relative one is nothing", []string{"GOCACHE=cache"}, []string{"home/.cache/go-build", "ws/cache"}, nil, nil, "GOCACHE is not an absolute path"},
		{"a missing one is dropped", []string{"GOCACHE=@/gone"}, []string{"home/.cache/go-build"}, nil, nil, "does not exist"},
		{"GOPATH is narrowed", []string{"GOPATH=@/gp:@/other"}, []string{"gp/src", "gp/pkg/mod", "gp/bin", "other/pkg/mod"}, nil, []string{"gp/pkg/mod"}, ""},
		{"GOMODCACHE beats GOPATH", []string{"GOPATH=@/gp", "GOMODCACHE=@/mods"}, []string{"gp/pkg/mod", "mods"}, nil, []string{"mods"}, ""},
		{"CARGO_HOME has tails", []string{"CARGO_HOME=@/c"}, []string{"c/registry", "c/git", "c/bin"}, nil, []string{"c/registry", "c/git"}, ""},
		{"XDG_CACHE_HOME", []string{"XDG_CACHE_HOME=@/x"}, []string{"x/uv", "x/browser", "home/.cache/uv"}, nil, []string{"x/uv"}, ""},
		{"pnpm's variables", []string{"pnpm_config_store_dir=@/s", "npm_config_store_dir=@/old", "npm_config_cache_dir=@/m", "PNPM_HOME=@/p"}, []string{"s", "m", "old", "p/store"}, nil, []string{"s", "m"}, ""},
		{"bun and berry below XDG", []string{"XDG_CACHE_HOME=@/x", "XDG_DATA_HOME=@/d"}, []string{"x/.bun/install/cache", "d/yarn/berry/index", "d/yarn/berry/x"}, nil, []string{"x/.bun/install/cache", "d/yarn/berry/index"}, ""},
		{"HOME is unset", []string{"HOME", "UV_CACHE_DIR=@/uv"}, []string{"uv", "home/.cache/pip"}, nil, []string{"uv"}, "HOME is not set"},
		{"HOME is relative", []string{"HOME=home"}, []string{"home/.cache/pip"}, nil, nil, "HOME is not set"},
		{"HOME is a link", []string{"HOME=@/alias"}, []string{"home/.cache/pip"}, [][2]string{{"home", "alias"}}, []string{"home/.cache/pip"}, ""},
		{"a link out of HOME", nil, []string{"home/.cache", "disk/pip"}, [][2]string{{"disk/pip", "home/.cache/pip"}}, []string{"disk/pip"}, ""},
		{"a link into HOME", nil, []string{"home/.cache", "home/.ssh"}, [][2]string{{"home/.ssh", "home/.cache/uv"}}, nil, "in your home directory"},
		{"a link to HOME", nil, []string{"home/.cache"}, [][2]string{{"home", "home/.cache/uv"}}, nil, "not granted"},
		{"a link to everything", nil, []string{"home/.cache"}, [][2]string{{".", "home/.cache/uv"}}, nil, "not granted"},
		{"planted in the workspace", []string{"UV_CACHE_DIR=@/ws/.uv"}, []string{"disk"}, [][2]string{{"disk", "ws/.uv"}}, nil, "which a confined command could have made"},
		{"planted in another cache", []string{"UV_CACHE_DIR=@/home/.cache/pip/uv"}, []string{"home/.cache/pip", "disk"}, [][2]string{{"disk", "home/.cache/pip/uv"}}, []string{"home/.cache/pip"}, "which a confined command could have made"},
		{"planted above a cache", []string{"CARGO_HOME=@/ws/c"}, []string{"disk/registry"}, [][2]string{{"disk", "ws/c"}}, nil, "which a confined command could have made"},
		{"a file", []string{"UV_CACHE_DIR=@/home/f"}, nil, nil, nil, "not a directory"},
		{"a system directory", []string{"UV_CACHE_DIR=/usr/lib"}, nil, nil, nil, "system directory"},
		{"the directory of services", []string{"UV_CACHE_DIR=/var/lib"}, nil, nil, nil, "system directory"},
		{"HOME itself", []string{"UV_CACHE_DIR=@/home"}, nil, nil, nil, "your home directory"},
		{"above the workspace", []string{"UV_CACHE_DIR=@/"}, nil, nil, nil, "your home directory or the workspace"},
		{"TMPDIR", []string{"TMPDIR=@/t"}, []string{"t"}, nil, []string{"t"}, ""},
		{"TMPDIR is the usual one", []string{"TMPDIR=/tmp"}, nil, nil, nil, ""},
		{"TMPDIR is relative", []string{"TMPDIR=t"}, []string{"ws/t"}, nil, nil, ""},
		{"TMPDIR is missing", []string{"TMPDIR=@/gone"}, nil, nil, nil, "does not exist"},
		{"TMPDIR is HOME", []string{"TMPDIR=@/home"}, nil, nil, nil, "your home directory"},
		{"TMPDIR is a system directory", []string{"TMPDIR=/usr/lib"}, nil, nil, nil, "system directory"},
		{"TMPDIR planted in the workspace", []string{"TMPDIR=@/ws/t"}, []string{"disk"}, [][2]string{{"disk", "ws/t"}}, nil, "which a confined command could have made"},
		{"a cache planted in TMPDIR", []string{"TMPDIR=@/t", "UV_CACHE_DIR=@/t/uv"}, []string{"t", "disk"}, [][2]string{{"disk", "t/uv"}}, []string{"t"}, "which a confined command could have made"},
		{"a cache at a loop", []string{"UV_CACHE_DIR=@/uv"}, nil, [][2]string{{"uv", "uv"}}, nil, "a loop of symbolic links"},
		{"the same place twice", []string{"UV_CACHE_DIR=@/u", "PIP_CACHE_DIR=@/u/"}, []string{"u"}, nil, []string{"u"}, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			top := place(t)
			dirs(t, top, c.make...)
			if err := os.WriteFile(top+"/home/f", nil, 0o644); err != nil {
				t.Fatal(err)
			}
			for _, l := range c.links {
				link(t, filepath.Join(top, l[0]), filepath.Join(top, l[1]))
			}
			var vars []string
			for _, v := range c.vars {
				vars = append(vars, strings.ReplaceAll(v, "@", top))
			}
			r, err := Fence(input(top, vars...))
			if err != nil {
				t.Fatal(err)
			}
			want := []string{top + "/ws"}
			for _, g := range c.grants {
				want = append(want, filepath.Join(top, g))
			}
			got := slices.Sorted(slices.Values(r.Policy.WritableRoots))
			if slices.Sort(want); !slices.Equal(got, want) {
				t.Errorf("writable: %q, want %q", got, want)
			}
			notes := strings.Join(r.Notes, "\n")
			if c.note == "" && notes != "" || !strings.Contains(notes, c.note) {
				t.Errorf("notes: %q, want %q", notes, c.note)
			}
		})
	}
}

// Nothing of the table is a directory of programs, a credential or source.
func TestTableReachesCachesOnly(t *testing.T) {
	relocated := map[string]bool{}
	for _, c := range Caches {
		if c.ReadOnly {
			continue
		}
		for _, tail := range c.Tails {
			path := filepath.Join(c.Default, tail)
			if base := filepath.Base(path); !strings.Contains(path, "/") && base != ".ccache" || slices.Contains([]string{"bin", "src", "init.d", "toolchains"}, base) {
				t.Errorf("%s: %s", c.Tool, path)
			}
		}
		if c.Relocate != "" && relocated[c.Relocate] {
			t.Errorf("%s relocates two caches", c.Relocate)
		}
		relocated[c.Relocate] = true
	}
	for _, name := range Variables() {
		for _, bad := range []string{"LD_", "NODE_OPTIONS", "PYTHON", "GIT_", "GOFLAGS", "RUSTC", "RUSTFLAGS"} {
			if strings.HasPrefix(name, bad) {
				t.Errorf("%s loads code", name)
			}
		}
	}
}

func TestWorkspaceRelocates(t *testing.T) {
	top := place(t)
	dirs(t, top, "home/.cargo/registry", "home/.cargo/bin", "home/.rustup", "home/go/pkg/mod/cache/download")
	in := input(top)
	in.Offline = true
	r, err := Workspace(in)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"go/pkg/mod", ".cargo/registry", ".cargo/bin", ".rustup"}
	for i := range want {
		want[i] = filepath.Join(top, "home", want[i])
	}
	if !slices.Equal(r.Policy.ReadableRoots, want) || !slices.Equal(r.Policy.WritableRoots, []string{top + "/ws"}) {
		t.Errorf("got %+v", r.Policy)
	}
	if r.Policy.Network.Mode != protocol.NetOff || r.Policy.Scratch != protocol.ScratchTmpfs {
		t.Errorf("got %+v", r.Policy)
	}
	for name, value := range map[string]string{"CARGO_HOME": "/tmp/.cargo", "GOCACHE": "/tmp/.cache/go-build", "RUSTUP_HOME": top + "/home/.rustup", "GOPROXY": "file://" + top + "/home/go/pkg/mod/cache/download"} {
		if r.Env[name] != value {
			t.Errorf("%s=%q, want %q", name, r.Env[name], value)
		}
	}
	in.Offline, in.Scratch = false, "/scratch"
	if r, err = Workspace(in); err != nil || r.Env["GOPROXY"] != "" || r.Env["GOCACHE"] != "/scratch/.cache/go-build" {
		t.Errorf("with a network and a scratch of the host: %v, %v", r.Env, err)
	}
}

// A commondir that an earlier, unguarded command planted is said.
func TestPlantedCommondirIsSaid(t *testing.T) {
	for text, said := range map[string]bool{"": false, ".\n": false, "../evil\n": true} {
		top := place(t)
		dirs(t, top, "ws/.git/hooks")
		if text != "" {
			if err := os.WriteFile(top+"/ws/.git/commondir", []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		r, err := Fence(input(top))
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(strings.Join(r.Notes, "\n"), "another directory"); got != said {
			t.Errorf("%q: %q", text, r.Notes)
		}
		guarded := slices.ContainsFunc(r.Guards, func(g Guard) bool {
			return g.Path == top+"/ws/.git/commondir" && g.Missing == (text == "")
		})
		if !guarded || len(r.Policy.Mounts)+len(r.Policy.Protected) != len(r.Guards) {
			t.Errorf("%q: %+v", text, r.Guards)
		}
	}
}

// A command can make any number of worktrees, and with them of paths to guard.
func TestGuardsAreBounded(t *testing.T) {
	for n, want := range map[int]string{10: "", maxGuards / 3: "such paths already"} {
		top := place(t)
		dirs(t, top, "ws/.git/hooks")
		for i := range n {
			dirs(t, top, fmt.Sprintf("ws/.git/worktrees/%d/x", i))
		}
		r, err := Fence(input(top))
		if want == "" {
			if err != nil || len(r.Guards) < 4*n {
				t.Errorf("%d worktrees: %d guards, %v", n, len(r.Guards), err)
			}
		} else if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%d worktrees: %v", n, err)
		}
	}
}

// What could be a placeholder is waited for, but not all that a command can make.
func TestFreshDirectoriesAreNotWaitedForLong(t *testing.T) {
	top := place(t)
	b := &builder{}
	for i := range 6 * int(waiting/unmarked) {
		dirs(t, top, fmt.Sprintf("ws/%d", i))
	}
	begin := time.Now()
	for i := range 6 * int(waiting/unmarked) {
		if info, err := b.stands(fmt.Sprintf("%s/ws/%d", top, i)); err != nil || !info.IsDir() {
			t.Fatalf("%v, %v", info, err)
		}
	}
	if took := time.Since(begin); took < waiting || took > 3*waiting {
		t.Errorf("waited for %v", took)
	}
}

func TestFirstOutput(t *testing.T) {
	out, err := firstOutput(exec.Command("yes"), 1<<20)
	if err != nil || len(out) != 1<<20 {
		t.Errorf("one that goes on: %d bytes, %v", len(out), err)
	}
	if out, err = firstOutput(exec.Command("printf", "abc"), 4); err != nil || string(out) != "abc" {
		t.Errorf("a short one: %q, %v", out, err)
	}
	if out, err = firstOutput(exec.Command("sh", "-c", "echo a; exit 3"), 4); err == nil {
		t.Errorf("one that fails: %q", out)
	}
}
