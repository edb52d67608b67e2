package stage2

import (
	"bytes"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"

	"sandboxd/internal/seccomp"
	"sandboxd/internal/stage2/spec"
)

// status is what the kernel says of this thread's restrictions.
type status struct {
	seccomp    uint64 // 2: filters
	filters    uint64
	noNewPrivs bool
	counted    bool   // there is a Seccomp_filters line (5.9 and later)
	caps       uint64 // in any of the five sets
	capSets    int    // how many sets there were
}

// openStatus opens this thread's status file while it still can be: not the
// process's, which shows the main thread, and execve keeps the calling one's.
func (p *process) openStatus() *spec.Failure {
	fd, err := unix.Open("/proc/thread-self/status", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return failure(spec.StepVerify, "cannot open /proc/thread-self/status", err)
	}
	p.status = fd
	p.before, err = readStatus(fd)
	if err != nil {
		return failure(spec.StepVerify, "cannot read /proc/thread-self/status", err)
	}
	return nil
}

// readStatus reads to the end: a member of thousands of groups has a long line of them
// before the rest (setgroups(2) allows 65,536). Mostly the first buffer is enough.
func readStatus(fd int) (status, error) {
	buf := make([]byte, 8192)
	for n := 0; ; {
		m, err := unix.Pread(fd, buf[n:], int64(n))
		switch {
		case err == unix.EINTR:
		case err != nil:
			return status{}, err
		case m == 0:
			return parseStatus(buf[:n]), nil
		}
		if n += max(m, 0); n == len(buf) {
			buf = append(buf, make([]byte, len(buf))...)
		}
	}
}

func parseStatus(b []byte) (s status) {
	for len(b) > 0 { // bytes.Lines would have the caller's buffer allocated
		var line []byte
		line, b, _ = bytes.Cut(b, []byte("\n"))
		key, value, _ := bytes.Cut(bytes.TrimSpace(line), []byte(":"))
		base := 10
		switch string(key) {
		case "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb":
			base = 16
		case "Seccomp", "Seccomp_filters", "NoNewPrivs":
		default:
			continue
		}
		n, err := strconv.ParseUint(string(bytes.TrimSpace(value)), base, 64)
		if err != nil {
			continue
		}
		switch string(key) {
		case "Seccomp":
			s.seccomp = n
		case "Seccomp_filters":
			s.filters, s.counted = n, true
		case "NoNewPrivs":
			s.noNewPrivs = n == 1
		default:
			s.caps |= n
			s.capSets++
		}
	}
	return s
}

// readBack takes the report's facts from the kernel, after everything was set,
// and refuses to run where a call succeeded without its effect.
func (p *process) readBack() *spec.Failure {
	after, err := readStatus(p.status)
	if err != nil {
		return failure(spec.StepSeccomp, "cannot read /proc/thread-self/status", err)
	}
	p.report.SeccompMode, p.report.SeccompFilters, p.report.NoNewPrivs = after.seccomp, after.filters, after.noNewPrivs
	if !after.noNewPrivs {
		return failure(spec.StepNoNewPrivs, "no_new_privs was set and does not show", nil)
	}
	if !p.report.SeccompHardening {
		return nil // a skip says why
	}
	want := p.before.filters + uint64(len(seccomp.Programs(runtime.GOARCH, p.spec.Seccomp)))
	if after.seccomp != unix.SECCOMP_MODE_FILTER || after.counted && after.filters < want {
		return failure(spec.StepSeccomp, "the filters were installed and do not show", nil)
	}
	return nil
}
