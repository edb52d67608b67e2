package plan

import (
	"slices"

	"sandboxd/internal/host"
)

// BaseDir is one entry of the base view: a system path that is readable in every
// jail whose policy does not ask for the whole host.
type BaseDir struct {
	Path string
	Why  string
	// RootCaller says for whom the entry is meant: a caller with uid 0 is not
	// stopped by file modes, so some trees shrink to what programs need.
	RootCaller Audience
}

// Audience is who gets an entry of the base view.
type Audience uint8

// Audiences.
const (
	Everyone Audience = iota
	NotRoot           // left out for uid 0
	OnlyRoot          // stands in for a NotRoot entry
)

// linuxBase is the allowlist for Linux. Deliberately absent: /home /root /tmp
// /var/tmp /run /sys.
var linuxBase = []BaseDir{
	{"/usr", "programs, libraries and their data", Everyone},
	{"/bin", "programs (a link into /usr on merged systems)", Everyone},
	{"/sbin", "system programs (a link into /usr on merged systems)", Everyone},
	{"/lib", "libraries (a link into /usr on merged systems)", Everyone},
	{"/lib32", "32-bit libraries", Everyone},
	{"/lib64", "the dynamic loader", Everyone},
	{"/etc", "system configuration, certificates, user names", Everyone},
	{"/opt", "add-on software", Everyone},
	{"/var/lib", "package and alternatives data bases that tools read", NotRoot},
	{"/var/lib/ca-certificates", "certificate bundles", OnlyRoot},
	{"/var/lib/dpkg", "the package data base", OnlyRoot},
	{"/var/lib/alternatives", "the choice among alternative programs", OnlyRoot},
	{"/nix/store", "programs and libraries on NixOS", Everyone},
	{"/run/current-system", "the running system's profile on NixOS", Everyone},
	{resolvConf, "name resolution: the file that the link leads to", Everyone},
}

// darwinBase is the allowlist for macOS. Deliberately absent: /Users /private/tmp
// /private/var/tmp.
var darwinBase = []BaseDir{
	{"/System", "frameworks and the dynamic loader's cache", Everyone},
	{"/usr", "programs and libraries", Everyone},
	{"/bin", "programs", Everyone},
	{"/sbin", "system programs", Everyone},
	{"/Library", "frameworks, command line developer tools", Everyone},
	{"/private/etc", "system configuration, certificates", Everyone},
	{"/private/var/db", "time zones, receipts, the loader's data", Everyone},
	{"/private/var/select", "which shell is sh, which developer directory", Everyone},
	{"/dev", "devices; writing is granted one by one", Everyone},
	{"/opt/homebrew", "Homebrew's programs and libraries", Everyone},
}

// Base gives the base view for one system and caller, in the order of the page.
func Base(f host.Facts) []BaseDir {
	table := linuxBase
	switch f.OS {
	case "linux":
	case "darwin":
		table = darwinBase
		if f.DeveloperDir != "" {
			table = append(table[:len(table):len(table)], BaseDir{f.DeveloperDir, "the selected developer tools", Everyone})
		}
	default:
		return nil
	}
	var out []BaseDir
	for _, d := range table {
		if d.RootCaller == NotRoot && f.UID == 0 || d.RootCaller == OnlyRoot && f.UID != 0 {
			continue
		}
		out = append(out, d)
	}
	return out
}

// resolvConf is the one entry that is a file: its target must be in the view.
const resolvConf = "/etc/resolv.conf"

// autoDirs is Base under a host view. Narrowing it for root would only leave more
// of a writable "/" open, so there the wide entries stand for everybody; and the
// target of resolv.conf, in view anyway, is no system directory to keep read-only.
func autoDirs(f host.Facts, hostView bool) []BaseDir {
	if !hostView {
		return Base(f)
	}
	f.UID = max(f.UID, 1)
	return slices.DeleteFunc(Base(f), func(d BaseDir) bool { return d.Path == resolvConf })
}
