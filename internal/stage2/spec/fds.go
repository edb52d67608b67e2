package spec

// More descriptor numbers in stage 2. bubblewrap's own standard streams are
// /dev/null and a pipe for its messages, so that its processes hold none of the
// command's pipes: a command that closes its stdin is then seen to have done so,
// and bubblewrap's messages never mix with the command's. Stage 2 moves these
// three onto 0, 1 and 2 just before it marks the rest close-on-exec.
const (
	StdinFD  = 5
	StdoutFD = 6
	StderrFD = 7
	ImageFD  = 8 // what is executed as stage 2, as /proc/self/fd/8
	FirstFD  = 9 // bubblewrap's: --args, binds, data
)
