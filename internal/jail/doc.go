// Package jail starts one execution in its jail and supervises it to the end:
// it surveys the roots, asks the plan, renders and spawns the jail, pumps the
// standard streams, climbs the ladder of signals, and says what happened.
//
// The flow of one execution reads top to bottom: prepare (bytes on disk to a
// specification), spawn (specification to processes), supervise (processes to
// an outcome), cleanup (nothing left behind).
//
// What it does not protect: a host without bubblewrap gets no namespaces, and
// there a process that leaves its session can outlive a helper that was killed
// with SIGKILL; the report says so.
package jail
