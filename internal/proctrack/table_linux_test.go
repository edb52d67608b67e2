package proctrack

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

var realTable Table = linuxTable{}

// linuxTable is proc(5) as a table, for a test with real processes.
type linuxTable struct{}

func (linuxTable) Look(pid int32) (Proc, error) {
	b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(int(pid)), "stat"))
	if err != nil {
		return Proc{}, errors.Join(ErrGone, err)
	}
	f := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	ppid, _ := strconv.Atoi(f[1])
	pgid, _ := strconv.Atoi(f[2])
	born, err := strconv.ParseInt(f[19], 10, 64)
	return Proc{PID: pid, PPID: int32(ppid), PGID: int32(pgid), Born: born, Zombie: f[0] == "Z"}, err
}

func (l linuxTable) Snapshot(buf Snapshot) (Snapshot, error) {
	names, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return buf, err
	}
	for _, n := range names {
		pid, _ := strconv.Atoi(filepath.Base(n))
		if p, err := l.Look(int32(pid)); err == nil {
			buf = append(buf, p)
		}
	}
	return buf, nil
}
