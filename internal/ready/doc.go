// Package ready waits for descriptors on the Go runtime's own poller.
//
// A goroutine that blocks in a system call keeps its processor for up to 10 ms, and as
// long as one does, the runtime's monitor thread wakes some 12,000 times a second to
// see whether the processor is wanted: on a machine of two processors that took a tenth
// of every execution. A goroutine that waits here costs no thread and no wake-up.
package ready
