package probe

import (
	"io"
	"os"
	"strings"

	"sandboxd/internal/host"
)

// Look is Facts without starting anything: whether bubblewrap works stays open, unless
// there is none or a setting forbids it. Its options are read out of the text that its
// file holds for --help.
func Look(o Options) (host.Facts, error) {
	f := process(o)
	path, err := FindBwrap(o.Bwrap)
	if err != nil {
		return f, err
	}
	kernel(&f)
	if path == "" {
		f.Bwrap = noBubblewrap()
		return f, nil
	}
	f.Bwrap = host.Bwrap{Path: path, Reason: "it was not tried out", Flags: writtenOptions(path)}
	if cause, reason := Forbidden(ReadKernel()); reason != "" {
		f.Bwrap.State, f.Bwrap.Cause, f.Bwrap.Reason = host.Absent, cause, reason
	}
	return f, nil
}

func noBubblewrap() host.Bwrap {
	return host.Bwrap{State: host.Absent, Cause: host.NotInstalled, Reason: "there is no bubblewrap at " + strings.Join(trusted, ", ") + "; install the package bubblewrap, or name one with --bwrap"}
}

// maxImage bounds what is read of bubblewrap's file, in bytes; it has some 70 KiB.
const maxImage = 16 << 20

// writtenOptions are nil where the file holds no such text, a wrapper's for instance.
func writtenOptions(path string) map[string]bool {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	image, err := io.ReadAll(io.LimitReader(f, maxImage))
	// A NUL ends the text before.
	if flags := parseHelp(strings.ReplaceAll(string(image), "\x00", "\n")); err == nil && flags["args"] {
		return flags
	}
	return nil
}
