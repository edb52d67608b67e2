// Package server is the helper's frame loop: it speaks the protocol on its
// standard streams and runs one execution at a time.
//
// The loop never waits for the broker to read: replies go through a small
// bounded queue to the one writer, and only output waits for it. It decides
// nothing about paths or processes (internal/plan, internal/jail).
package server
