package cgroup

import (
	"fmt"
	"strconv"

	"sandboxd/protocol"
)

const (
	// Scaffold is the number of tasks of bubblewrap (its supervisor and the
	// namespace's init) that live beside the command for the whole execution.
	Scaffold = 2

	// startTasks is what bubblewrap and a Go stage 2 need until execve: 6 to 8 tasks,
	// measured. With less, stage 2 dies at random with the Go runtime's own text.
	startTasks = 8

	// maxPids is the largest value that pids.max takes: PID_MAX_LIMIT of 64-bit
	// kernels. More tasks than that cannot exist, so clamping loses nothing.
	maxPids = 4 << 20

	// MinMemBytes is the smallest memory ceiling, in bytes, that is not refused:
	// bubblewrap, stage 2 and a small command start under it every time, page tables
	// and kernel stacks included (TestCeilSmallestMemory).
	MinMemBytes = 8 << 20
)

// Write is one file of a cgroup and what is written to it. Optional files are left
// out where this kernel does not have them.
type Write struct {
	Name, Data string
	Optional   bool
}

// Wanted reports whether the limits ask for a ceiling that a cgroup holds.
func Wanted(l protocol.Limits) bool { return l.MemBytes != 0 || l.Pids != 0 }

// StartAllowance is how many tasks more than l.Pids the cgroup allows until the
// command has been executed; 0 where no ceiling was asked for.
func StartAllowance(l protocol.Limits) uint64 {
	if l.Pids == 0 {
		return 0
	}
	if l.Pids >= startTasks-Scaffold {
		return Scaffold
	}
	return startTasks - l.Pids
}

// swapMax is missing where swap is not built in or not accounted.
const swapMax = "memory.swap.max"

// Writes lists what sets the limits, in order. allowance is added to l.Pids.
func Writes(l protocol.Limits, allowance uint64) []Write {
	var w []Write
	if l.MemBytes != 0 {
		w = append(w,
			Write{Name: "memory.max", Data: strconv.FormatUint(l.MemBytes, 10)},
			// Without it a ceiling of memory is one of resident memory: the rest is
			// swapped out. See Group.Swaps.
			Write{Name: swapMax, Data: "0", Optional: true},
			// All or nothing: a build whose compiler was killed must not go on. 4.19.
			Write{Name: "memory.oom.group", Data: "1", Optional: true})
	}
	if l.Pids != 0 {
		w = append(w, Write{Name: "pids.max", Data: strconv.FormatUint(pidsMax(l.Pids, allowance), 10)})
	}
	return w
}

func pidsMax(pids, allowance uint64) uint64 {
	if pids >= maxPids || pids+allowance >= maxPids {
		return maxPids
	}
	return pids + allowance
}

// TooSmallError is a memory ceiling below what it takes to start any command. The
// execution is refused: under such a ceiling stage 2 would be killed at random.
type TooSmallError struct{ MemBytes uint64 }

func (e *TooSmallError) Error() string {
	return fmt.Sprintf("limits.mem_bytes %d is less than the %d bytes (%d MiB) that starting a command takes; raise it",
		e.MemBytes, uint64(MinMemBytes), MinMemBytes>>20)
}

func checkMemory(l protocol.Limits) error {
	if l.MemBytes != 0 && l.MemBytes < MinMemBytes {
		return &TooSmallError{l.MemBytes}
	}
	return nil
}
