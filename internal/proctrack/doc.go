// Package proctrack follows the descendants of one process by samples of the process
// table, for systems without a pid namespace, a subreaper or a stable handle on a
// process.
//
// It does not contain anything: a process that forks twice between two samples, with
// its parent gone before the second, is never seen. A process is told from a later
// one with its number by its time of birth; the look at that time and the signal are
// two steps, so a number that is reused between them gets the signal. It adds to
// signals to process groups and does not replace them.
package proctrack
