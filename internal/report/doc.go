// Package report turns what is known after an execution into exec_exit.enforcement,
// and the facts of a host into hello.features. It is pure: the same outcome gives
// the same entries on every machine.
//
// Its rule is that a layer that says nothing was not applied. An entry claims a
// layer only where the Outcome holds a witness of it; everything else that the
// policy asked for is a skip with a reason. It does not protect anything and cannot
// check a witness: a helper that puts an untrue fact into an Outcome gets an untrue
// report.
package report
