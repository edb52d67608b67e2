package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"
)

// screen is where answers for a person go. Width and colour are those of a terminal;
// elsewhere lines are whole and plain.
type screen struct {
	w      io.Writer
	width  int // columns, 0 for no bound
	colour bool
	utf8   bool // lines may be drawn
}

func newScreen(s System) screen {
	out := screen{w: s.Stdout, utf8: speaksUTF8(s.Environ)}
	f, ok := file(s.Stdout)
	if !ok || windowWidth(f) < 0 {
		return out
	}
	out.width = max(windowWidth(f), 0)
	if out.width > 0 && out.width < 40 {
		out.width = 40
	}
	out.colour = getenv(s.Environ, "NO_COLOR") == "" && getenv(s.Environ, "TERM") != "dumb"
	return out
}

// checked remembers the first write that failed: what a program reads must not look
// whole when it is not.
type checked struct {
	w   io.Writer
	err error
}

func (c *checked) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	if err != nil && c.err == nil {
		c.err = err
	}
	return n, err
}

// file is the file behind a writer, if there is one.
func file(w io.Writer) (*os.File, bool) {
	if c, ok := w.(*checked); ok {
		w = c.w
	}
	f, ok := w.(*os.File)
	return f, ok
}

// speaksUTF8 follows the order of locale(7).
func speaksUTF8(environ []string) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := getenv(environ, name); v != "" {
			v = strings.ToUpper(v)
			return strings.Contains(v, "UTF-8") || strings.Contains(v, "UTF8")
		}
	}
	return false
}

// Colours, by what they mean.
const (
	plain  = ""
	good   = "32"
	middle = "33"
	bad    = "31"
	strong = "1"
)

func (s screen) paint(colour, text string) string {
	if !s.colour || colour == plain {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

// line prints one line that may be broken at words; what follows the first is indented
// by hang columns. used says how many columns of it stand there already, painted.
func (s screen) line(head string, used, hang int, text string) {
	fmt.Fprint(s.w, head)
	at := used
	for i, word := range strings.Fields(printable(text)) {
		n := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case s.width > 0 && at+1+n > s.width && at > hang:
			fmt.Fprintf(s.w, "\n%*s", hang, "")
			at = hang
		default:
			fmt.Fprint(s.w, " ")
			at++
		}
		fmt.Fprint(s.w, word)
		at += n
	}
	fmt.Fprintln(s.w)
}

// field prints "name: text" with the text in a column of its own.
func (s screen) field(name, text string) {
	const column = 16
	s.line(fmt.Sprintf("  %-*s", column-2, name), column, column, text)
}

// text prints paragraphs, broken at words. Lines that are indented are to be copied, so
// they stay as they are.
func (s screen) text(indent int, text string) {
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		switch {
		case line == "":
			fmt.Fprintln(s.w)
		case line[0] == ' ':
			fmt.Fprintf(s.w, "%*s%s\n", indent, "", printable(line))
		default:
			s.line(fmt.Sprintf("%*s", indent, ""), indent, indent, line)
		}
	}
}
