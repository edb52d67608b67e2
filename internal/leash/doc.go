// Package leash is a process that outlives a helper that was killed by a moment, to end
// what that one leaves of a jail it was building.
//
// bubblewrap's supervisor binds its life to the helper's (PR_SET_PDEATHSIG) just before
// it releases the process that it cloned. On a busy machine it can be put aside between
// these two calls; if the helper is killed meanwhile, the supervisor dies with it and the
// cloned process, which nothing binds to anyone yet, waits for ever. Nobody but a process
// that still lives can end it: no signal at the end of a descriptor or of a session
// reaches the init of a pid namespace.
//
// Every scaffolding inherits the write end of a pipe, which bubblewrap closes once its
// jail stands and stage 2 before the command runs: whoever holds it when the helper is
// gone was being built by it.
package leash
