//go:build linux

package e2e

import (
	"archive/zip"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"os"
	"strings"
	"testing"
)

// control says that the same writes work without the fence, so that the modes of
// the directories are not what denies them.
func (s *site) control() {
	s.t.Helper()
	if got := s.onHost("HOMEDIR=" + s.home() + "\n" + outside); strings.Contains(got, " no") || strings.Count(got, " yes\n") != 9 {
		s.t.Errorf("the control:\n%s", got)
	}
}

func TestFenceDeniesOneDirectoryOutside(t *testing.T) {
	eachSite(t, func(t *testing.T, s *site) {
		s.outsideDirs()
		env := s.fenceEnv()
		s.noneOutside(env, "fence")
		s.noneOutside(env, "workspace")
		var inside strings.Builder
		for _, dir := range []string{".cargo/registry", ".cargo/git", ".gradle/caches", "go/pkg/mod", ".cache/go-build", ".cache/pip", ".cache/ccache", ".npm/_cacache", ".npm/_logs"} {
			fmt.Fprintf(&inside, "try %s 'echo x >$HOME/%s/probe'\n", dir, dir)
		}
		r := s.good(env, try+inside.String()+"try tmp 'mktemp'\ntry ws 'echo x >probe'\n", "--preset", "fence")
		if strings.Contains(r.out, " no") || strings.Count(r.out, " yes\n") != 11 {
			t.Errorf("inside the fence:\n%s%s", r.out, r.messages)
		}
		if !s.exists("home/go/pkg/mod/probe") {
			t.Error("the cache of the host was not written")
		}
		s.control()
	})
}

// A module that is downloaded from a proxy of files and built, twice: the second
// time from the cache that the first one filled.
func TestFenceGoModule(t *testing.T) {
	fenceTool(t, "go")
	eachSite(t, func(t *testing.T, s *site) {
		s.outsideDirs()
		s.goProxy()
		t.Cleanup(func() { s.onHost("chmod -R u+w " + s.path("home/go")) }) // go makes modules read-only
		s.write("ws/go.mod", "module app\n\ngo 1.21\n\nrequire example.org/dep v1.0.0\n")
		s.write("ws/main.go", "package main\n\nimport \"example.org/dep\"\n\nfunc main() { println(dep.Name) }\n")
		env := s.fenceEnv("PROXY=file://" + s.path("proxy"))
		const build = "set -e; export GOFLAGS=-mod=mod GONOSUMDB=* GOTOOLCHAIN=local; go build -o app . && ./app 2>&1"
		args := []string{"--env", "GOPROXY=file://" + s.path("proxy")}
		r := s.good(env, build, append(args, "--preset", "fence")...)
		if r.out != "from the dependency\n" || !s.exists("home/go/pkg/mod/example.org/dep@v1.0.0/dep.go") {
			t.Errorf("%q, %q", r.out, r.messages)
		}
		s.noneOutside(env, "fence")
		if r := s.good(env, build, "--preset", "fence", "--env", "GOPROXY=off"); r.out != "from the dependency\n" {
			t.Errorf("from the cache: %q, %q", r.out, r.messages)
		}
		// The strict jail builds from the modules that are there, without a network.
		if r := s.good(env, build, "--preset", "workspace"); r.out != "from the dependency\n" {
			t.Errorf("workspace: %q, %q", r.out, r.messages)
		}
		if s.u.UID != os.Getuid() {
			return // each of these compiles the runtime; once will do
		}
		if r := s.good(env, build, append(args, "--preset", "workspace", "--ro", s.path("proxy"))...); r.out != "from the dependency\n" {
			t.Errorf("workspace, from the proxy: %q, %q", r.out, r.messages)
		}
		s.control()
	})
}

// goProxy makes a module proxy of files; see `go help goproxy`.
func (s *site) goProxy() {
	s.t.Helper()
	const at, mod = "proxy/example.org/dep/@v/", "module example.org/dep\n\ngo 1.21\n"
	s.write(at+"list", "v1.0.0\n")
	s.write(at+"v1.0.0.info", `{"Version":"v1.0.0","Time":"2024-01-02T03:04:05Z"}`)
	s.write(at+"v1.0.0.mod", mod)
	s.archive(at+"v1.0.0.zip", [][2]string{
		{"example.org/dep@v1.0.0/go.mod", mod},
		{"example.org/dep@v1.0.0/dep.go", "package dep\n\nconst Name = \"from the dependency\"\n"},
	})
}

// archive writes a zip file.
func (s *site) archive(rel string, files [][2]string) {
	s.t.Helper()
	f, err := os.Create(s.write(rel, ""))
	if err != nil {
		s.t.Fatal(err)
	}
	z := zip.NewWriter(f)
	for _, file := range files {
		w, err := z.Create(file[0])
		if err == nil {
			_, err = w.Write([]byte(file[1]))
		}
		if err != nil {
			s.t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		s.t.Fatal(err)
	}
	f.Close()
}

func TestFenceCargo(t *testing.T) {
	cargo := fenceTool(t, "cargo")
	// A toolchain in another user's home is not this one's to read.
	s := newSite(t, meAtHome())
	dep := s.mkdir("dep")
	s.write("dep/Cargo.toml", "[package]\nname = \"dep\"\nversion = \"0.1.0\"\nedition = \"2021\"\n")
	s.write("dep/src/lib.rs", "pub const NAME: &str = \"from the dependency\";\n")
	s.onHost("cd ../dep && git init -q && git add . && git -c user.name=A -c user.email=a@example.org commit -qm dep")
	s.write("ws/Cargo.toml", "[package]\nname = \"app\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[dependencies]\ndep = { git = \"file://"+dep+"\" }\n")
	s.write("ws/src/main.rs", "fn main() { println!(\"{}\", dep::NAME); }\n")
	s.outsideDirs()
	rustup := os.Getenv("RUSTUP_HOME")
	if rustup == "" {
		rustup = os.Getenv("HOME") + "/.rustup"
	}
	env := s.fenceEnv("RUSTUP_HOME=" + rustup)
	env[0] = "PATH=" + strings.TrimSuffix(cargo, "/cargo") + ":/usr/bin:/bin"
	for _, preset := range []string{"fence", "workspace"} {
		if r := s.good(env, "cargo build -q && target/debug/app && rm -r target", "--preset", preset, "--ro", strings.TrimSuffix(cargo, "/cargo"), "--ro", dep); r.out != "from the dependency\n" {
			t.Errorf("%s: %q, %q", preset, r.out, r.messages)
		}
		s.noneOutside(env, preset)
	}
	// Offline, from what the first build left in the cache of the host.
	if got := s.onHost("cd ../home/.cargo/git && ls -d db/dep-* checkouts/dep-*/*"); strings.Count(got, "\n") != 2 {
		t.Errorf("cargo's cache was not used: %q", got)
	}
	s.onHost("cd .. && mv dep gone")
	if r := s.good(env, "cargo build -q --offline && target/debug/app", "--preset", "fence"); r.out != "from the dependency\n" {
		t.Errorf("from the cache: %q, %q", r.out, r.messages)
	}
	s.control()
}

func TestFenceNpm(t *testing.T) {
	fenceTool(t, "npm")
	eachSite(t, func(t *testing.T, s *site) {
		s.outsideDirs()
		s.write("ws/package.json", `{"name":"app","version":"1.0.0","private":true}`)
		s.write("ws/dep/package.json", `{"name":"dep","version":"1.0.0","main":"i.js"}`)
		s.write("ws/dep/i.js", "module.exports = 'from dep'\n")
		const install = "set -e; npm pack --silent ./dep >/dev/null; npm install --silent --offline --no-audit --no-fund ./dep-1.0.0.tgz; node -p \"require('dep')\"; rm -rf node_modules"
		for _, preset := range []string{"fence", "workspace"} {
			if r := s.good(s.fenceEnv(), install, "--preset", preset); r.out != "from dep\n" {
				t.Errorf("%s: %q, %q", preset, r.out, r.messages)
			}
			s.noneOutside(s.fenceEnv(), preset)
		}
		if got := s.onHost("find ../home/.npm/_cacache -type f | head -1; ls ../home/.npm/_logs | head -1"); strings.Count(got, "\n") < 2 {
			t.Errorf("npm's cache was not used: %q", got)
		}
		s.control()
	})
}

func TestFencePip(t *testing.T) {
	fenceTool(t, "python3")
	eachSite(t, func(t *testing.T, s *site) {
		s.outsideDirs()
		s.wheel("ws/dep-1.0-py3-none-any.whl")
		const install = `set -e; /usr/bin/python3 -m pip install -q --no-index --no-deps --disable-pip-version-check --target lib ./dep-1.0-py3-none-any.whl
PYTHONPATH=lib /usr/bin/python3 -c 'import dep; print(dep.name)'; rm -rf lib`
		for _, preset := range []string{"fence", "workspace"} {
			if r := s.good(s.fenceEnv(), install, "--preset", preset); r.out != "from the wheel\n" {
				t.Errorf("%s: %q, %q", preset, r.out, r.messages)
			}
			s.noneOutside(s.fenceEnv(), preset)
		}
		s.control()
	})
}

// wheel writes the smallest wheel; see the binary distribution format.
func (s *site) wheel(rel string) {
	const info = "dep-1.0.dist-info/"
	files := [][2]string{
		{"dep.py", "name = 'from the wheel'\n"},
		{info + "METADATA", "Metadata-Version: 2.1\nName: dep\nVersion: 1.0\n"},
		{info + "WHEEL", "Wheel-Version: 1.0\nGenerator: hand\nRoot-Is-Purelib: true\nTag: py3-none-any\n"},
	}
	record := ""
	for _, f := range files {
		sum := sha256.Sum256([]byte(f[1]))
		record += fmt.Sprintf("%s,sha256=%s,%d\n", f[0], base64.RawURLEncoding.EncodeToString(sum[:]), len(f[1]))
	}
	s.archive(rel, append(files, [2]string{info + "RECORD", record + info + "RECORD,,\n"}))
}

func TestFenceCcache(t *testing.T) {
	fenceTool(t, "ccache")
	fenceTool(t, "gcc")
	eachSite(t, func(t *testing.T, s *site) {
		s.outsideDirs()
		s.write("ws/main.c", "#include <stdio.h>\nint main(void) { puts(\"from C\"); return 0; }\n")
		moved := "CCACHE_DIR=" + s.mkdir("moved")
		for _, env := range [][]string{s.fenceEnv(), s.fenceEnv(moved)} {
			const build = "set -e; ccache gcc -c main.c -o main.o; rm main.o; ccache gcc -c main.c -o main.o; gcc main.o -o app; ./app; ccache -s | grep -m1 -c Hits"
			if r := s.good(env, build, "--preset", "fence"); r.out != "from C\n1\n" {
				t.Errorf("%q, %q", r.out, r.messages)
			}
			s.noneOutside(env, "fence")
			if r := s.good(env, "ccache gcc -c main.c -o main.o; gcc main.o -o app; ./app", "--preset", "workspace"); r.out != "from C\n" {
				t.Errorf("workspace: %q, %q", r.out, r.messages)
			}
		}
		if got := s.onHost("find ../home/.cache/ccache ../moved -name '*R' | sed 's/moved.*/moved/; s/home.*/home/' | sort -u"); got != "../home\n../moved\n" {
			t.Errorf("the caches that were filled: %q", got)
		}
		s.control()
		// With CCACHE_DIR the configuration is in the cache, and names a program.
		const plant = try + `try conf 'echo prefix_command=/evil >$CCACHE_DIR/ccache.conf'
try move 'mv $CCACHE_DIR/ccache.conf $CCACHE_DIR/x'`
		if r := s.good(s.fenceEnv(moved), plant, "--preset", "fence"); r.out != "conf no\nmove no\n" {
			t.Errorf("%q, %q", r.out, r.messages)
		}
		if r := s.good(s.fenceEnv(moved), plant, "--preset", "fence", "--no-guard"); r.out != "conf yes\nmove yes\n" {
			t.Errorf("the control: %q, %q", r.out, r.messages)
		}
	})
}
