// Package procfs reads what Linux writes in files of /proc whose form is easily got
// wrong: a process's stat line and the paths of mountinfo. It is given bytes and opens
// nothing. It does not say whether the process still is the one that was asked for: a
// number is used again, and only the same start time before and after tells.
package procfs

import (
	"bytes"
	"errors"
	"strconv"
)

// Stat is what this project needs of /proc/PID/stat; see proc_pid_stat(5).
type Stat struct {
	Comm  []byte // the name, part of the line that was given; it may hold anything
	State byte   // R, S, D, T, t, Z, X and rarer ones
	PPID  int
	// Terminal is the controlling terminal's device number, 0 without one.
	Terminal int
	Start    uint64 // in hundredths of a second since boot, whatever the kernel's own clock
}

var errStat = errors.New("cannot parse /proc/<pid>/stat")

// ParseStat reads a line of /proc/PID/stat. It allocates nothing: a walk through a tree
// that forks must be quicker than the tree.
func ParseStat(line []byte) (Stat, error) {
	// The name stands in parentheses and may hold both, blanks and newlines: what comes
	// behind the last one holds none.
	open, end := bytes.IndexByte(line, '('), bytes.LastIndexByte(line, ')')
	if open < 0 || end < open {
		return Stat{}, errStat
	}
	s := Stat{Comm: line[open+1 : end]}
	var err error
	field := 2 // counted as in the manual page
	for f := range bytes.FieldsSeq(line[end+1:]) {
		field++
		switch field {
		case 3:
			s.State = f[0]
		case 4:
			s.PPID, err = strconv.Atoi(string(f))
		case 7:
			s.Terminal, err = strconv.Atoi(string(f))
		case 22:
			s.Start, err = strconv.ParseUint(string(f), 10, 64)
			if err == nil {
				return s, nil
			}
		}
		if err != nil {
			break
		}
	}
	return Stat{}, errStat
}
