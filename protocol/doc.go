// Package protocol is the language between a broker and sandboxd: frames on stdio,
// the bodies of each kind, the policy document's canonical form, the vocabulary of
// enforcement entries, and what a policy demands of them. PROTOCOL.md in this
// directory is the normative text, and the fixtures directory holds golden frames
// for implementers in any language.
//
// Everything sent is canonical msgpack; everything received is decoded strictly. A
// malformed frame ends the channel, a bad body of a known kind does not, and both
// are a *DecodeError. The values are plain: nothing here starts a process, opens a
// file or decides whether a policy is sensible (internal/policy does that).
//
// What it does not protect: there is no authentication and no encryption, for the
// channel is a pair of pipes inherited by exactly one child; whoever holds those
// descriptors is the broker. An entry of exec_exit.enforcement is the helper's
// word: Required and Missing check that the word was given, not that it is true.
package protocol

//go:generate go run ./internal/gentags -in tags.toml -out tags_gen.go
