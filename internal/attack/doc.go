// Package attack holds the corpus of attacks on sandboxd: small hostile programs as a
// table, each run by the real binary in a real jail and each with a control, the same
// code where the defence is missing, which has to succeed. It is tests alone.
//
// An attack that its control cannot show on a host (a kernel without vsock, a call that
// only root may make) says nothing there; it is listed and counted apart. What gets in
// by design is in the table too, with the reason, so that it is noticed when it changes.
// The corpus does not try timing, hardware or faults of the kernel itself.
package attack
