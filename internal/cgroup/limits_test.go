package cgroup

import (
	"errors"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
	"sandboxd/protocol"
)

func TestWrites(t *testing.T) {
	memory := []Write{
		{"memory.max", "67108864", false},
		{"memory.swap.max", "0", true},
		{"memory.oom.group", "1", true},
	}
	for _, c := range []struct {
		name      string
		limits    protocol.Limits
		allowance uint64
		want      []Write
	}{
		{"none", protocol.Limits{CPUSeconds: 1, WallSeconds: 1, FsizeBytes: 1, OutputBytes: 1}, 2, nil},
		{"memory", protocol.Limits{MemBytes: 64 << 20}, 2, memory},
		{"pids", protocol.Limits{Pids: 16}, 2, []Write{{"pids.max", "18", false}}},
		{"both", protocol.Limits{MemBytes: 64 << 20, Pids: 1}, 7, append(memory[:3:3], Write{"pids.max", "8", false})},
		{"no allowance", protocol.Limits{Pids: 5}, 0, []Write{{"pids.max", "5", false}}},
		{"the kernel's largest", protocol.Limits{Pids: 4<<20 - 1}, 2, []Write{{"pids.max", "4194304", false}}},
		{"more than there can be", protocol.Limits{Pids: 1<<64 - 1}, 2, []Write{{"pids.max", "4194304", false}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Writes(c.limits, c.allowance); !reflect.DeepEqual(got, c.want) {
				t.Errorf("got  %v\nwant %v", got, c.want)
			}
		})
	}
}

// Whatever is asked for, stage 2 gets its eight tasks and the command no more than
// bubblewrap's two on top of its own.
func TestAllowanceIsStage2sAndNoMore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := protocol.Limits{Pids: rapid.OneOf(rapid.Uint64Range(1, 20), rapid.Uint64Min(1)).Draw(t, "pids")}
		start := StartAllowance(l)
		if got := max(l.Pids+Scaffold, startTasks); l.Pids < 1<<32 && l.Pids+start != got {
			t.Fatalf("pids %d start with %d, want %d", l.Pids, l.Pids+start, got)
		}
		if start < Scaffold || start > startTasks-1 {
			t.Fatalf("pids %d: allowance %d", l.Pids, start)
		}
		before, err1 := strconv.ParseUint(Writes(l, start)[0].Data, 10, 64)
		after, err2 := strconv.ParseUint(Writes(l, Scaffold)[0].Data, 10, 64)
		if err1 != nil || err2 != nil || after > before || after > maxPids || before < startTasks {
			t.Fatalf("pids %d: %d, lowered to %d", l.Pids, before, after)
		}
	})
	if got := StartAllowance(protocol.Limits{MemBytes: 1 << 30}); got != 0 {
		t.Errorf("an allowance of %d where no ceiling was asked for", got)
	}
}

func TestWanted(t *testing.T) {
	for l, want := range map[protocol.Limits]bool{
		{}:                                false,
		{CPUSeconds: 1, OutputBytes: 100}: false,
		{MemBytes: 1}:                     true,
		{Pids: 1}:                         true,
	} {
		if Wanted(l) != want {
			t.Errorf("%+v: got %v", l, !want)
		}
	}
}

func TestMemoryBelowStage2sNeedIsNamed(t *testing.T) {
	for _, mem := range []uint64{0, MinMemBytes, 1 << 40} {
		if err := checkMemory(protocol.Limits{MemBytes: mem}); err != nil {
			t.Errorf("%d: %v", mem, err)
		}
	}
	err := checkMemory(protocol.Limits{MemBytes: MinMemBytes - 1})
	var small *TooSmallError
	if !errors.As(err, &small) || !strings.Contains(err.Error(), strconv.Itoa(MinMemBytes)) {
		t.Errorf("got %v, want a *TooSmallError that names the need", err)
	}
}
