//go:build linux

package e2e

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandboxd/protocol"
)

// A helper takes what its last command led to over for the next one where nothing has
// changed: whatever has is as in a helper that never ran anything.
func TestHostChangesBetweenCommands(t *testing.T) {
	changes := map[string]string{
		"nothing":                      "true",
		"the workspace":                "cd ..; mv ws old; mkdir ws; echo new >ws/f",
		"a readable root":              "mv sub x; mkdir sub; echo new >sub/f",
		"a readable root, a link":      "mv sub x; ln -s ../keys sub",
		"a readable root, gone":        "rm -r sub",
		"a readable root, closed":      "chmod 0 ../ro",
		"a link on the way":            "rm ../l; ln -s keys ../l",
		"a masked file":                "mv .env x; echo other-secret >.env",
		"a masked file, a directory":   "rm .env; mkdir .env; echo other-secret >.env/f",
		"a masked file, a link":        "mv .env x; ln -s x .env",
		"a masked file, gone":          "rm .env",
		"a second name":                "ln .env other",
		"what is protected, there":     "echo other-secret >../ro/late",
		"above what is protected":      "mkdir ../ro/deep; echo other-secret >../ro/deep/late",
		"of what is protected, inode":  "rm ../keys/id; echo other-secret >../keys/id",
		"the directory of the command": "mkdir bin; printf '#!/bin/sh\\necho planted\\n' >bin/tool; chmod 755 bin/tool",
	}
	const show = `cat f sub/f ../l/f .env .env/f other ../ro/late ../ro/deep/late ../keys/id ../ro/other/id 2>/dev/null; tool 2>/dev/null; : >made && echo made`
	eachSite(t, func(t *testing.T, s *site) {
		changes := maps.Clone(changes)
		if s.u.UID == 0 { // nothing that is asked for is another file then
			changes["another name, by a mount"] = "mount --bind ../keys ../ro/other"
		}
		for name, change := range changes {
			for _, with := range []string{"--standby=on", "--standby=off", "a placeholder"} {
				t.Run(name+" "+with, func(t *testing.T) {
					mode := "--standby=off"
					if with == "--standby=on" {
						mode = with
					}
					s := newSite(t, s.u)
					s.write("ws/f", "one\n")
					s.write("ws/sub/f", "sub\n")
					s.write("ws/.env", "secret\n")
					s.write("ro/f", "ro\n")
					s.write("keys/id", "secret\n")
					s.write("keys/f", "keys\n")
					s.mkdir("ro/other")
					t.Cleanup(func() { _ = unix.Unmount(s.path("ro/other"), unix.MNT_DETACH) })
					s.link("ro", "l")
					p := s.policy(s.protect("ws/.env", "ro/late", "ro/deep/late", "keys/id"), func(p *protocol.Policy) {
						if with == "a placeholder" {
							s.protect("ws/none")(p)
						}
						p.ReadableRoots = append(p.ReadableRoots, s.path("ws/sub"), s.path("l"), s.path("keys"), s.path("ro"))
					})
					ask := func(h *conn, id uint64) (string, []string) {
						h.send(id, protocol.ExecStart{Argv: []string{"sh", "-c", show}, Cwd: s.ws, Token: []byte("t"),
							Env: map[string]string{"PATH": s.ws + "/bin:/usr/bin:/bin"}})
						r := h.collect(id)
						if r.fail != nil {
							return string(r.fail.Code) + " " + r.fail.Msg, nil
						}
						entries := slices.DeleteFunc(slices.Clone(r.exit.Enforcement), func(e string) bool { return strings.HasPrefix(e, "cgroup") })
						return r.stdout, entries
					}
					old := connect(t, s.u, p, mode)
					time.Sleep(30 * time.Millisecond) // what is that new is not vouched for
					for id := range uint64(3) {
						if got, _ := ask(old, 2+id); !strings.HasPrefix(got, "one\nsub\nro\n") || strings.Contains(got, "secret") {
							t.Fatalf("before: %q", got)
						}
					}
					if mode == "--standby=on" { // bubblewrap makes again what goes while it builds
						old.ready()
					}
					s.onHost(change)
					got, entries := ask(old, 10)
					s.end(old)
					fresh := connect(t, s.u, p, "--standby=off")
					want, expected := ask(fresh, 10)
					s.end(fresh)
					if got != want || !slices.Equal(entries, expected) {
						t.Errorf("got  %q %q\nwant %q %q", got, entries, want, expected)
					}
					if strings.Contains(got, "secret") && name != "a second name" { // which is told
						t.Errorf("it shows what is protected: %q", got)
					}
				})
			}
		}
	})
}
