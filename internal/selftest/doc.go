// Package selftest asks the running kernel what it really enforces: it runs probes
// through the real jail (a helper of this very binary, spoken to over the protocol)
// and says of each whether it was ENFORCED, SKIPPED or FAILED.
//
// Its rules, which the code in judge.go keeps:
//   - A layer that is there must enforce. Only a layer that the report itself calls
//     missing makes a skip.
//   - A probe that can only fail proves nothing. Every denial has a control, which is
//     the same action by the same program where it is allowed, and the jailed run
//     performs an allowed effect that is looked at from outside.
//   - A run in which nothing was enforced is no pass.
//
// What it does not protect: it finds a layer that does not work, not every hole in
// one that does. It believes its own binary and the kernel it runs on.
package selftest
