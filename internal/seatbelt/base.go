package seatbelt

// static is one line of the profile that no policy changes.
type static struct {
	allow bool
	op    string
	arg   string // text of the filter, "" for none
	why   string
}

// basics is what every process needs that ordinary command line tools are made of.
var basics = []static{
	{true, "process-fork", "", "sh, make, git, clang's driver: all start others"},
	{true, "signal", "(target same-sandbox)", "shells, timeout, test runners: only the execution's own processes"},
	{true, "process-info*", "(target same-sandbox)", "pgrep, node, swift build: only the execution's own processes"},
	{true, "sysctl-read", "", "libsystem, clang, node and Go ask for the number of cores, page size, version"},
	{false, "sysctl-read", `(sysctl-name-prefix "kern.procargs")`, "it shows other processes' arguments and environment, secrets included"},
	{true, "ipc-posix-sem", "", "python3's multiprocessing"},
	{true, "ipc-posix-shm*", "", "python3's multiprocessing, and libnotify's page for time zone changes"},
	{true, "mach-host*", "", "host statistics: swift build, node's os.cpus()"},
	{false, "mach-host-exception-port-set", "", "a root caller could take over the host's exceptions"},
	{false, "mach-host-special-port-set", "", "a root caller could put itself in place of a system service"},
	{true, "system-socket", "(socket-domain AF_UNIX)", "python3's multiprocessing, node's pipes, git's fsmonitor"},
	{true, "pseudo-tty", "", "script, python3's pty, expect: to make a terminal of their own"},
}

// lookups are the Mach services that are reachable in every jail.
var lookups = []service{
	{"com.apple.PowerManagement.control", "caffeinate-like assertions of build tools; swift build"},
	{"com.apple.bsd.dirhelper", "confstr(_CS_DARWIN_USER_TEMP_DIR): clang, swift, xcrun"},
	{"com.apple.system.opendirectoryd.libinfo", "getpwuid, getgrgid: git, python3, node, ssh"},
	{"com.apple.system.opendirectoryd.membership", "getgrouplist: id, python3, node"},
}

// netLookups are for the network mode "full" alone.
var netLookups = []service{
	{"com.apple.trustd", "TLS: the system's certificate checks"},
	{"com.apple.trustd.agent", "TLS: the user's certificate checks (curl, git, swift package)"},
	{"com.apple.SystemConfiguration.configd", "DNS and proxies: which servers"},
	{"com.apple.SystemConfiguration.DNSConfiguration", "DNS: libresolv's configuration"},
	{"com.apple.SystemConfiguration.NetworkInformation", "reachability: CFNetwork"},
	{"com.apple.networkd", "connections by name: Network.framework"},
	{"com.apple.dnssd.service", "DNS: getaddrinfo through mDNSResponder"},
}

type service struct{ name, why string }

// resolverSocket is where getaddrinfo reaches mDNSResponder.
const resolverSocket = "/private/var/run/mDNSResponder"

// device is one node that a command can use.
type device struct{ path, why string }

// Devices by name and nothing else of /dev: the raw disks are there, and a root
// caller's modes allow them. Without /dev/null git, python3 and curl do not start.
var devices = []device{
	{"/dev/null", "everything"},
	{"/dev/zero", "dd, mmap of old programs"},
	{"/dev/random", "ssh-keygen, gpg"},
	{"/dev/urandom", "python3, node, git"},
	{"/dev/tty", "less, ssh: the controlling terminal, if there is one"},
	{"/dev/dtracehelper", "dyld registers probes through it: python3, node, swift"},
	{"/dev/autofs_nowait", "libsystem's path look-ups that must not trigger a mount"},
	{"/dev/stdout", "shell scripts, awk"},
	{"/dev/stderr", "shell scripts, awk"},
	{"/dev/ptmx", "openpty: script, python3's pty, node-pty"},
}

// descriptors is /dev/fd, which shows a process what it has open anyway.
const descriptors = "/dev/fd"

// ownTerminal is the other end of a terminal that a process of the jail has made:
// the kernel gives it the extension then. Without the extension the pattern would
// open the user's other terminals, keystrokes included.
const ownTerminal = `(require-all (regex #"^/dev/ttys[0-9]+$") (extension "com.apple.sandbox.pty"))`

// preamble is the part that comes first.
func preamble(netFull bool) []rule {
	var out []rule
	for _, s := range basics {
		r := rule{allow: s.allow, ops: []string{s.op}, note: s.why}
		if s.arg != "" {
			r.filters = []filter{{raw: s.arg}}
		}
		out = append(out, r)
	}
	names := lookups
	if netFull {
		names = append(names[:len(names):len(names)], netLookups...)
	}
	for _, s := range names {
		out = append(out, rule{allow: true, ops: []string{"mach-lookup"}, note: s.why,
			filters: []filter{{raw: `(global-name "` + s.name + `")`}}})
	}
	// dyld and libignition read the root directory itself before main; its entries'
	// names are no secret of the user.
	out = append(out, rule{allow: true, ops: []string{"file-read*"}, note: "dyld opens the root directory", filters: []filter{{raw: `(literal "/")`}}})
	return append(out, network(netFull)...)
}

// network allows what mode "full" means. Off and proxy have no rule: the default is
// to deny, and there is no proxy that could enforce an allow-list.
func network(full bool) []rule {
	if !full {
		return nil
	}
	note := "network mode full"
	return []rule{
		{allow: true, ops: []string{"system-socket"}, note: note},
		{allow: true, ops: listenOps, note: note, filters: []filter{{raw: "(local ip)"}}},
		{allow: true, ops: connectOps, note: note, filters: []filter{{raw: "(remote ip)"}}},
		{allow: true, ops: connectOps, note: "name resolution", filters: []filter{remote(literal(resolverSocket))}},
	}
}

// deviceRules come after every broad grant, a view of the whole host included: of
// /dev only the names are in it.
func deviceRules() []rule {
	r := rule{allow: true, ops: deviceOps, note: "devices by name"}
	for _, d := range devices {
		r.filters = append(r.filters, filter{raw: `(literal "` + d.path + `")`})
	}
	return []rule{
		{ops: allOps, note: "no disks", filters: []filter{{raw: `(subpath "/dev")`}}},
		{allow: true, ops: metaOps, note: "names of devices; ls, ttyname", filters: []filter{{raw: `(subpath "/dev")`}}},
		{allow: true, ops: []string{"file-read*"}, note: "names of devices", filters: []filter{{raw: `(literal "/dev")`}}},
		r,
		{allow: true, ops: deviceOps, note: "the process's own descriptors", filters: []filter{{raw: `(subpath "` + descriptors + `")`}}},
		{allow: true, ops: deviceOps, note: "a terminal that the execution made", filters: []filter{{raw: ownTerminal}}},
	}
}
