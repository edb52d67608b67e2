//go:build linux

package e2e

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sandboxd/internal/testenv"
)

// block is one codeBlocks block of the README. The comment before it says what a test does
// with it: nothing ("not run: REASON"), a file of the reader's ("file: NAME"), or run it
// beside the clients ("embed"). Every other block of commands is run as it stands.
type block struct {
	line             int
	language, marker string
	text             string
}

var codeBlocks = regexp.MustCompile("(?ms)(?:^<!-- ([^\n]*) -->\n)?^```([a-z]*)\n(.*?)^```$")

func blocks(t *testing.T) (all []block) {
	t.Helper()
	_, text := readme(t)
	for _, m := range codeBlocks.FindAllStringSubmatchIndex(text, -1) {
		part := func(i int) string {
			if m[2*i] < 0 {
				return ""
			}
			return text[m[2*i]:m[2*i+1]]
		}
		b := block{1 + strings.Count(text[:m[4]], "\n"), part(2), part(1), part(3)}
		switch {
		case b.language == "text", b.language == "sh":
		case strings.HasPrefix(b.marker, "not run: "), strings.HasPrefix(b.marker, "file: "):
		default:
			t.Errorf("README.md:%d: a block of %q that nothing runs and no marker excuses", b.line, b.language)
		}
		all = append(all, b)
	}
	return all
}

// newcomer is what a reader has who did what the README says until then: sandboxd on
// PATH, a project with a Makefile, some data in HOME.
func newcomer(t *testing.T, u testenv.User) (project string, env []string) {
	t.Helper()
	home := testenv.TempDir(t, u)
	bin := filepath.Join(home, "bin")
	project = filepath.Join(home, "project")
	files := map[string]string{
		"project/Makefile": "test:\n\t@echo tested > result && echo built and tested\n",
		"project/tool":     "#!/bin/sh\necho a tool\n",
		"project/.env":     "SECRET=1\n",
		"project/fetch.py": "import os\nprint(open(os.environ.get('SET', '" + home + "/data/set.csv')).read())\n",
		"data/set.csv":     "1,2\n",
	}
	for name, text := range files {
		path := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		writeMode(t, path, text, 0o755)
	}
	if err := os.MkdirAll(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(testenv.Binary(t), filepath.Join(bin, "sandboxd")); err != nil {
		t.Fatal(err)
	}
	for _, b := range blocks(t) {
		if name, ok := strings.CutPrefix(b.marker, "file: "); ok {
			name, text := inFile(name, b.text)
			write(t, filepath.Join(project, name), strings.ReplaceAll(text, "/home/me", home))
		}
	}
	give(t, home, u)
	return project, append(os.Environ(), "HOME="+home, "PATH="+bin+":"+os.Getenv("PATH"), "XDG_CONFIG_HOME="+home+"/.config", "GIT_CONFIG_GLOBAL="+home+"/.gitconfig")
}

// inFile puts a block into what its marker gives around it.
func inFile(marker, text string) (name, whole string) {
	name, around, ok := strings.Cut(marker, ", in: ")
	if ok {
		return name, strings.NewReplacer("; ", "\n", "import (", "import (\n").Replace(around[:strings.Index(around, "func main")]) + around[strings.Index(around, "func main"):] + "\n" + text
	}
	return name, text
}

func give(t *testing.T, dir string, u testenv.User) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || u.UID == os.Getuid() {
			return err
		}
		return os.Lchown(path, u.UID, u.GID)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// bash runs a block as a reader would, each line after the other.
func (b block) bash(t *testing.T, u testenv.User, dir string, env []string) {
	t.Helper()
	cmd := exec.Command(testenv.Tool(t, "bash"), "-e", "-x", "-o", "pipefail")
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(b.text)
	home := testenv.User{Name: u.Name, UID: u.UID, GID: u.GID, Home: filepath.Dir(dir)}
	cmd.Env = env
	testenv.As(t, cmd, home)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("README.md:%d: %v\n%s", b.line, err, out)
	}
	if strings.Contains(string(out), "NOT enforced") {
		t.Errorf("README.md:%d: something was not enforced:\n%s", b.line, out)
	}
}

func TestReadmeCommands(t *testing.T) {
	testenv.EachUser(t, func(t *testing.T, u testenv.User) {
		project, env := newcomer(t, u)
		ran := 0
		for _, b := range blocks(t) {
			if b.language == "sh" && b.marker == "" {
				b.bash(t, u, project, env)
				ran += strings.Count(b.text, "\n")
			}
		}
		if ran < 15 {
			t.Errorf("only %d lines of commands were found", ran)
		}
		for _, made := range []string{"result", "my-policy.json", "sandboxd.1", "sandboxd.bash"} {
			if b, err := os.ReadFile(filepath.Join(project, made)); err != nil || len(b) == 0 {
				t.Errorf("the commands did not make %s: %v", made, err)
			}
		}
	})
}

// TestReadmeEmbeds runs the programs of "Embed it" beside copies of the clients.
func TestReadmeEmbeds(t *testing.T) {
	for _, tool := range []string{"python3", "node", "npm", "go"} {
		testenv.Tool(t, tool)
	}
	u := testenv.Me()
	project, env := newcomer(t, u)
	for _, name := range []string{"python/sandboxd_client.py", "node/sandboxd-client.mjs"} {
		b, err := os.ReadFile(filepath.Join(testenv.Root(t), "testdata", "clients", name))
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(project, filepath.Base(name)), string(b))
	}
	if err := os.Symlink(testenv.Root(t), filepath.Join(filepath.Dir(project), "sandboxd")); err != nil {
		t.Fatal(err)
	}
	// The modules and packages that set-up fetched, not once more.
	env = append(env, "npm_config_prefer_offline=true", "npm_config_audit=false", "npm_config_cache="+asked(t, "npm", "config", "get", "cache"), "GOFLAGS=")
	for _, name := range []string{"GOMODCACHE", "GOCACHE", "GOPATH"} {
		env = append(env, name+"="+asked(t, "go", "env", name))
	}
	n := 0
	for _, b := range blocks(t) {
		if b.marker == "embed" {
			n++
			for _, line := range strings.Split(strings.TrimSpace(b.text), "\n") {
				if err := os.RemoveAll(filepath.Join(project, "result")); err != nil {
					t.Fatal(err)
				}
				block{b.line, b.language, "", line + "\n"}.bash(t, u, project, env)
				_, err := os.Stat(filepath.Join(project, "result"))
				if runs := regexp.MustCompile(`^(/usr/bin/python3|node|go run) `).MatchString(line); runs && err != nil {
					t.Errorf("README.md:%d: `%s` did not run make test in the project", b.line, line)
				}
			}
		}
	}
	if n != 1 {
		t.Errorf("found %d blocks that run the programs", n)
	}
}

func asked(t *testing.T, argv ...string) string {
	t.Helper()
	out, err := exec.Command(argv[0], argv[1:]...).Output()
	if err != nil {
		t.Fatalf("%v: %v", argv, err)
	}
	return strings.TrimSpace(string(out))
}

// What stands in the text exists too: commands, flags, targets of make, files that are
// linked, and the messages by which somebody looks for help.
func TestReadmeNamesWhatThereIs(t *testing.T) {
	_, text := readme(t)
	root, bin := testenv.Root(t), testenv.Binary(t)
	help := asked(t, bin, "help", "server")
	for _, c := range []string{"run", "explain", "policy", "doctor", "self-test", "completion", "man"} {
		help += asked(t, bin, "help", c)
	}
	own := regexp.MustCompile("(?:`|^|\\n|&& )(?:\\./)?sandboxd ([a-z-]+)")
	for _, m := range found(t, own, text, 10) {
		if err := exec.Command(bin, "help", m).Run(); err != nil && m != "help" {
			t.Errorf("README.md names the command %q, which there is not", m)
		}
	}
	for _, m := range found(t, regexp.MustCompile(`(--[a-z][a-z-]+)`), text, 20) {
		foreign := map[string]bool{"--skip-worktree": true, "--no-daemon": true, "--global": true, "--user": true, "--offline": true}
		if !foreign[m] && !strings.Contains(help, m) {
			t.Errorf("README.md names the flag %s, which no help has", m)
		}
	}
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range found(t, regexp.MustCompile("(?:`|\\n)make ([a-z]+)"), text, 4) {
		if !regexp.MustCompile(`(?m)^` + m + `:`).Match(makefile) {
			t.Errorf("README.md names make %s, which the Makefile does not have", m)
		}
	}
	for _, m := range found(t, regexp.MustCompile(`\]\(([^)#][^)#]*)`), text, 5) {
		if _, err := os.Stat(filepath.Join(root, m)); err != nil {
			t.Errorf("README.md links %s: %v", m, err)
		}
	}
	for _, m := range found(t, regexp.MustCompile(`\]\(#([^)]*)\)`), text, 8) {
		if !strings.Contains(anchors(text), "#"+m+"\n") {
			t.Errorf("README.md links #%s, and no heading has that name", m)
		}
	}
	gate := found(t, regexp.MustCompile(`- run: sandboxd (self-test --require .*)`), text, 1)[0]
	if out, err := exec.Command(bin, append(strings.Fields(gate), "--only", "write-outside")...).CombinedOutput(); err != nil {
		t.Errorf("README.md's gate for CI: %v\n%s", err, out)
	}
	_, table, _ := strings.Cut(text, "## Troubleshooting by message")
	table, _, _ = strings.Cut(table, "\n## ")
	said := sources(t, root)
	for _, row := range found(t, regexp.MustCompile("(?m)^\\| (`.*?`(?:, `.*?`)*) \\|"), table, 8) {
		for _, message := range strings.Split(strings.Trim(row, "`"), "`, `") {
			if message != "Invalid cross-device link" && !strings.Contains(said, message) {
				t.Errorf("README.md explains the message %q, which nothing says", message)
			}
		}
	}
}

// A tool of the strict jail has an empty cache, unless it is told of the user's.
func TestReadmeNamesACache(t *testing.T) {
	_, text := readme(t)
	line := found(t, regexp.MustCompile("`run (--env npm_config_cache=[^`]*)`"), text, 1)[0]
	if !strings.Contains(text, "| `ENOTCACHED`") {
		t.Error("README.md does not have the message of npm")
	}
	npm, home, project := testenv.Tool(t, "npm"), testenv.TempDir(t, testenv.Me()), copied(t, "node")
	run := func(script string) (string, error) {
		if err := os.RemoveAll(filepath.Join(project, "node_modules")); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(testenv.Tool(t, "bash"), "-c", script, testenv.Binary(t))
		cmd.Dir = project // a HOME of its own, since a user's .npmrc may say what a lock file holds
		cmd.Env = append(os.Environ(), "HOME="+home, "npm_config_audit=false", "npm_config_fund=false", "PATH="+filepath.Dir(npm)+":"+os.Getenv("PATH"))
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := run("unset npm_config_cache; npm install --ignore-scripts"); err != nil { // on the host, which fills the cache
		t.Fatalf("%v\n%s", err, out)
	}
	if out, err := run(`unset npm_config_cache; "$0" run -- npm ci --offline`); err == nil || !strings.Contains(out, "ENOTCACHED") {
		t.Errorf("with a cache of its own: %v\n%s", err, out)
	}
	out, err := run(`unset npm_config_cache; "$0" run ` + line)
	if _, e := os.Stat(filepath.Join(project, "node_modules", "@msgpack", "msgpack", "package.json")); err != nil || e != nil {
		t.Errorf("%s: %v, %v\n%s", line, err, e, out)
	}
}

// What "Cost" claims is what the kept benchmarks show.
func TestReadmeCost(t *testing.T) {
	_, text := readme(t)
	_, cost, _ := strings.Cut(text, "\n## Cost\n")
	cost, _, _ = strings.Cut(strings.ReplaceAll(cost, "\n", " "), " ## ")
	files, err := filepath.Glob(filepath.Join(testenv.Root(t), "testdata", "bench", "*.txt"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%q, %v", files, err)
	}
	for _, path := range files {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		value := func(line, unit string) float64 {
			m := found(t, regexp.MustCompile(`(?m)^Benchmark`+line+`-?\d*\s.*?([0-9.]+) `+unit+`(?:\s|$)`), string(b), 1)
			v, err := strconv.ParseFloat(m[0], 64)
			if err != nil {
				t.Fatal(err)
			}
			return v
		}
		mounts := func(n string) float64 { return value("Roots/"+n, "sandboxd-µs") / value("Roots/"+n, "sandboxd/bwrap") }
		for claim, holds := range map[string]bool{
			"costs less than twice what bubblewrap alone does":                                   value("True", "cold/bwrap") < 2,
			"less than bubblewrap alone where its jail was ready":                                value("True", "standby/bwrap") < 1,
			"grows faster than the number of mounts (from 100 to 1,000 roots more than tenfold)": mounts("1000") > 10*mounts("100"),
		} {
			if !strings.Contains(cost, claim) || !holds {
				t.Errorf("README.md should say %q, and %s show it: %v", claim, filepath.Base(path), holds)
			}
		}
	}
}

func found(t *testing.T, re *regexp.Regexp, text string, least int) (all []string) {
	t.Helper()
	for _, m := range re.FindAllStringSubmatch(text, -1) {
		all = append(all, m[1])
	}
	if len(all) < least {
		t.Fatalf("%v matched %d times in README.md, expected %d", re, len(all), least)
	}
	return all
}

func anchors(text string) string {
	var b strings.Builder
	for _, m := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(text, -1) {
		name := regexp.MustCompile(`[^a-z0-9 -]`).ReplaceAllString(strings.ToLower(m[1]), "")
		fmt.Fprintf(&b, "#%s\n", strings.ReplaceAll(name, " ", "-"))
	}
	return b.String()
}

// sources is the code that speaks: tests and comments are left out, and help, which is no
// message.
func sources(t *testing.T, root string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(filepath.Join(root, "internal"), func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if slices.Contains([]string{"flags.go", "help.go", "table.go", "man.go"}, filepath.Base(path)) {
			return err
		}
		for line := range strings.Lines(string(text)) {
			code, _, _ := strings.Cut(line, "// ")
			b.WriteString(code)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// The policy reference has every key, and the other pages name what there is.
func TestPagesNameWhatThereIs(t *testing.T) {
	_, text := readme(t)
	root := testenv.Root(t)
	_, reference, _ := strings.Cut(text, "## Policy reference")
	var policy map[string]any
	if err := json.Unmarshal([]byte(asked(t, testenv.Binary(t), "policy", "workspace", "--workspace", t.TempDir())), &policy); err != nil || len(policy) < 8 {
		t.Fatalf("%v: %v", err, policy)
	}
	keys := []string{"network.mode", "path", "access", "required"}
	for key, v := range policy {
		inner, ok := v.(map[string]any)
		for k := range inner {
			keys = append(keys, key+"."+k)
		}
		if !ok {
			keys = append(keys, key)
		}
	}
	for _, key := range keys {
		if !strings.Contains(reference, "`"+key+"`") {
			t.Errorf("README.md's policy reference does not have `%s`", key)
		}
	}
	for _, page := range []string{"SECURITY.md", "CONTRIBUTING.md", "CHANGELOG.md"} {
		b, err := os.ReadFile(filepath.Join(root, page))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile("(?:`|\\]\\()((?:internal|protocol|testdata|[A-Z]+\\.md)[^`)# ]*)").FindAllStringSubmatch(string(b), -1) {
			if at, err := filepath.Glob(filepath.Join(root, m[1])); err != nil || len(at) == 0 {
				t.Errorf("%s names %s, which there is not", page, m[1])
			}
		}
	}
}
