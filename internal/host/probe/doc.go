// Package probe asks the machine, once per process, for the facts that planning
// looks at: bubblewrap and whether it works, Landlock, seccomp, memory, user.
//
// What it does not protect against: a machine that changes after it was asked. A
// bubblewrap that worked once may fail later; that is each execution's own finding.
// That it works here proves no jail either: stage 2 proves each one from inside.
package probe
