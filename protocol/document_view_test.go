package protocol_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"sandboxd/internal/host"
	"sandboxd/internal/plan"
	"sandboxd/internal/report"
	"sandboxd/internal/server"
	"sandboxd/protocol"
)

// The base view, the hidden places and the order of a report stand elsewhere as
// data; the document has them from there.
func TestDocumentAgreesWithTheJail(t *testing.T) {
	protocol.Agrees(t, map[string]string{"view": viewTable(), "order": wrapped(order(t), ", ")})
}

// viewTable shows Linux's base view for the two kinds of caller, and what is hidden
// in it.
func viewTable() string {
	var b strings.Builder
	b.WriteString("\n| base view | holds | for |\n|---|---|---|\n")
	row := func(d plan.BaseDir, who string) { fmt.Fprintf(&b, "| `%s` | %s | %s |\n", d.Path, d.Why, who) }
	user, root := plan.Base(host.Facts{OS: "linux", UID: 1000}), plan.Base(host.Facts{OS: "linux"})
	for len(user)+len(root) > 0 {
		switch {
		case len(user) > 0 && len(root) > 0 && user[0] == root[0]:
			row(user[0], "every caller")
			user, root = user[1:], root[1:]
		case len(user) > 0 && !holds(root, user[0]):
			row(user[0], "every caller but uid 0")
			user = user[1:]
		default:
			row(root[0], "uid 0, whom file modes do not stop")
			root = root[1:]
		}
	}
	b.WriteString("\nWhere the view would show them, these are masked, unless a root or the scratch is one of them or lies in it, or a mount\n" +
		"is one of them (`{uid}` is the caller's); so is the directory of the socket that the helper's SSH_AUTH_SOCK names:\n" + wrapped(paths(plan.ServicePlaces), ", "))
	b.WriteString("\nFor uid 0, these too:\n" + wrapped(paths(plan.SecretPlaces), ", ") + "\n")
	return b.String()
}

func holds(list []plan.BaseDir, d plan.BaseDir) bool {
	for _, e := range list {
		if e == d {
			return true
		}
	}
	return false
}

func paths(places []plan.Place) (out []string) {
	for _, p := range places {
		out = append(out, "`"+p.Path+"`")
	}
	return out
}

// wrapped breaks a list into lines of at most 120 columns.
func wrapped(items []string, sep string) string {
	var b strings.Builder
	column := 0
	for i, item := range items {
		if i < len(items)-1 {
			item += strings.TrimSpace(sep)
		}
		if column > 0 && column+1+len(item) > 120 {
			b.WriteString("\n")
			column = 0
		}
		if column > 0 {
			b.WriteString(" ")
			column++
		}
		b.WriteString(item)
		column += len(item)
	}
	return b.String() + "\n"
}

// order asks the report for the order of its entries, by skipping every layer.
func order(t *testing.T) (tags []string) {
	o := report.Outcome{Platform: "other"}
	want := 0
	for _, tag := range protocol.Tags() {
		if tag.Applied || tag.Skip {
			want++
			o.Extra = append(o.Extra, plan.Skip{Tag: tag.ID, Reason: "x"})
		}
	}
	for _, entry := range report.Entries(o) {
		tag, _ := protocol.Layer(entry)
		if item := "`" + tag + "`"; len(tags) == 0 || tags[len(tags)-1] != item {
			tags = append(tags, item)
		}
	}
	if len(tags) != want {
		t.Fatalf("the report orders %d tags of %d: %v", len(tags), want, tags)
	}
	return tags
}

// Nothing that the helper is started with, and no exception to the placeholders, may
// be left out of the document.
func TestDocumentNamesFlagsAndStandIns(t *testing.T) {
	b, err := os.ReadFile("PROTOCOL.md")
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	flags := regexp.MustCompile(`(?m)^  --[a-z-]+`).FindAllString(server.Usage, -1)
	if len(flags) < 8 {
		t.Fatalf("found only the flags %q", flags)
	}
	for _, flag := range flags {
		if !strings.Contains(text, "\n| `"+strings.TrimSpace(flag)) {
			t.Errorf("%s has no row", flag)
		}
	}
	for _, s := range plan.StandIns {
		if !strings.Contains(text, "`"+strings.TrimPrefix(s.Name, "~/")+"`") {
			t.Errorf("the placeholder %s is not named", s.Name)
		}
	}
	if strings.Contains(text, "\n| `--no-such-flag") {
		t.Error("the search finds what is not there")
	}
}
