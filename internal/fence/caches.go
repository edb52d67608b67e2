package fence

// Source is a variable that moves a cache.
type Source struct {
	Var  string
	Tail string // from the variable's directory to the cache's
	List bool   // a colon-separated list, of which the first directory counts
}

// Cache is where one tool keeps what it can fetch or make again. A set variable
// replaces the default; the tails reach the cache itself, never a directory of
// programs, a toolchain, a credential, an init script or source.
type Cache struct {
	Tool    string
	Sources []Source // the first one that is set counts
	Default string   // below HOME
	Tails   []string // below that; "" is the place itself
	// Execute lists what of it a tool runs or reads as configuration, as patterns: what
	// is there is guarded, and what a command adds is said.
	Execute []string
	// Repositories lists, as patterns, where a tool starts git in it: guarded like the
	// workspace's.
	Repositories []string
	// Relocate is the variable that moves it into the scratch, "" for none.
	Relocate string
	ReadOnly bool   // never writable
	Tried    string // the tool that a test runs with it, "" for none
}

// Caches is the table of the write fence. Sources: each tool's manual.
var Caches = []Cache{
	{Tool: "Go modules", Sources: []Source{{Var: "GOMODCACHE"}, {"GOPATH", "pkg/mod", true}}, Default: "go/pkg/mod", Tails: []string{""},
		// A toolchain there is run by every go command whose go.mod asks for it, and is
		// taken for whole only with its hash in the second place.
		Execute:      []string{"golang.org/toolchain@*", "cache/download/golang.org/toolchain"},
		Repositories: []string{"cache/vcs/*"}, Relocate: "GOMODCACHE", Tried: "go"},
	{Tool: "Go checksums", Sources: []Source{{"GOPATH", "pkg/sumdb", true}}, Default: "go/pkg/sumdb", Tails: []string{""}},
	{Tool: "Go builds", Sources: []Source{{Var: "GOCACHE"}, {"XDG_CACHE_HOME", "go-build", false}}, Default: ".cache/go-build", Tails: []string{""}, Relocate: "GOCACHE", Tried: "go"},
	{Tool: "cargo", Sources: []Source{{Var: "CARGO_HOME"}}, Default: ".cargo", Tails: []string{"registry", "git"}, Repositories: []string{"db/*", "checkouts/*/*/.git"}, Relocate: "CARGO_HOME", Tried: "cargo"},
	{Tool: "cargo programs", Sources: []Source{{"CARGO_HOME", "bin", false}}, Default: ".cargo/bin", Tails: []string{""}, ReadOnly: true, Tried: "cargo"},
	{Tool: "rustup", Sources: []Source{{Var: "RUSTUP_HOME"}}, Default: ".rustup", Tails: []string{""}, ReadOnly: true, Tried: "cargo"},
	{Tool: "npm", Sources: []Source{{Var: "npm_config_cache"}}, Default: ".npm", Tails: []string{"_cacache", "_logs"}, Relocate: "npm_config_cache", Tried: "npm"},
	// pnpm_config_* since its version 11, npm_config_* before.
	{Tool: "pnpm store", Sources: []Source{{Var: "pnpm_config_store_dir"}, {Var: "npm_config_store_dir"}, {"PNPM_HOME", "store", false}, {"XDG_DATA_HOME", "pnpm/store", false}}, Default: ".local/share/pnpm/store", Tails: []string{""}},
	{Tool: "pnpm metadata", Sources: []Source{{Var: "pnpm_config_cache_dir"}, {Var: "npm_config_cache_dir"}, {"XDG_CACHE_HOME", "pnpm", false}}, Default: ".cache/pnpm", Tails: []string{""}, Execute: []string{"dlx"}},
	{Tool: "yarn", Sources: []Source{{Var: "YARN_CACHE_FOLDER"}, {"XDG_CACHE_HOME", "yarn", false}}, Default: ".cache/yarn", Tails: []string{""}, Relocate: "YARN_CACHE_FOLDER"},
	{Tool: "yarn (berry)", Sources: []Source{{Var: "YARN_GLOBAL_FOLDER"}, {"XDG_DATA_HOME", "yarn/berry", false}}, Default: ".yarn/berry", Tails: []string{"cache", "index", "metadata"}, Relocate: "YARN_GLOBAL_FOLDER"},
	{Tool: "bun", Sources: []Source{{Var: "BUN_INSTALL_CACHE_DIR"}, {"BUN_INSTALL", "install/cache", false}, {"XDG_CACHE_HOME", ".bun/install/cache", false}}, Default: ".bun/install/cache", Tails: []string{""}, Relocate: "BUN_INSTALL_CACHE_DIR"},
	{Tool: "uv", Sources: []Source{{Var: "UV_CACHE_DIR"}, {"XDG_CACHE_HOME", "uv", false}}, Default: ".cache/uv", Tails: []string{""}, Repositories: []string{"git-v*/db/*", "git-v*/checkouts/*/*/.git"}, Relocate: "UV_CACHE_DIR"},
	{Tool: "pip", Sources: []Source{{Var: "PIP_CACHE_DIR"}, {"XDG_CACHE_HOME", "pip", false}}, Default: ".cache/pip", Tails: []string{""}, Relocate: "PIP_CACHE_DIR", Tried: "pip"},
	{Tool: "Maven", Default: ".m2", Tails: []string{"repository"}},
	// Not daemon, which names processes to connect to, nor native, which holds libraries.
	{Tool: "Gradle", Sources: []Source{{Var: "GRADLE_USER_HOME"}}, Default: ".gradle", Tails: []string{"caches", "workers", "wrapper/dists"}, Execute: []string{"*/*/gradle-*"}, Relocate: "GRADLE_USER_HOME"},
	// With CCACHE_DIR, and in the old place, ccache reads its configuration from the
	// cache itself, and prefix_command there runs a program.
	{Tool: "ccache", Sources: []Source{{Var: "CCACHE_DIR"}, {"XDG_CACHE_HOME", "ccache", false}}, Default: ".cache/ccache", Tails: []string{""}, Execute: []string{"ccache.conf"}, Relocate: "CCACHE_DIR", Tried: "ccache"},
	{Tool: "ccache (old place)", Default: ".ccache", Tails: []string{""}, Execute: []string{"ccache.conf"}, Tried: "ccache"},
	{Tool: "sccache", Sources: []Source{{Var: "SCCACHE_DIR"}, {"XDG_CACHE_HOME", "sccache", false}}, Default: ".cache/sccache", Tails: []string{""}, Relocate: "SCCACHE_DIR"},
	{Tool: "Bazel", Sources: []Source{{"XDG_CACHE_HOME", "bazel", false}}, Default: ".cache/bazel", Tails: []string{""}, Execute: []string{"_bazel_*/install/*"}},
}

// Variables lists the names that say where a cache is, each once: a command that
// is to use the caches needs them. None of them makes a program load code.
func Variables() []string {
	seen := map[string]bool{}
	var out []string
	for _, c := range Caches {
		for _, s := range c.Sources {
			if !seen[s.Var] {
				seen[s.Var] = true
				out = append(out, s.Var)
			}
		}
	}
	return out
}
