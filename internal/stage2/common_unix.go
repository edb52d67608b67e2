//go:build linux || darwin

package stage2

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"sandboxd/internal/stage2/spec"
)

// begin is Main on the thread that is to call execve: 2 when its descriptors are not those
// of a stage 2, else 1 after a failure went to fd 4 (or nobody was there to read it).
func begin() int {
	if !isStage2() {
		os.Stderr.WriteString(usage)
		return exitUsage
	}
	if f := guarded(); f != nil {
		send(f.Append(nil))
	}
	return exitFailed
}

// isStage2 tells a stage 2 from a person's command line.
func isStage2() bool {
	var st unix.Stat_t
	if unix.Fstat(spec.SpecFD, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return false
	}
	kind, err := unix.GetsockoptInt(spec.ReportFD, unix.SOL_SOCKET, unix.SO_TYPE)
	if err != nil || kind != reportType {
		return false
	}
	for fd := spec.StdinFD; fd <= spec.StderrFD; fd++ {
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil {
			return false
		}
	}
	return true
}

// guarded turns a defect of ours into a failure with a name: a Go trace would
// otherwise be all there is.
func guarded() (f *spec.Failure) {
	defer func() {
		if recover() != nil {
			f = &spec.Failure{Step: spec.StepInternal, Msg: "stage 2 panicked; this is a defect of sandboxd"}
		}
	}()
	return run()
}

func readSpec() (spec.Spec, *spec.Failure) {
	buf, f := readWhole(spec.SpecFD, spec.StepSpec, "specification")
	if f != nil {
		return spec.Spec{}, f
	}
	s, err := spec.DecodeSpec(buf)
	if err != nil {
		return spec.Spec{}, failure(spec.StepSpec, "cannot decode the specification", err)
	}
	return s, nil
}

// readWhole reads a memfd and closes it.
func readWhole(fd int, step, what string) ([]byte, *spec.Failure) {
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, failure(step, "cannot stat the "+what, err)
	}
	if st.Size > spec.MaxSpec {
		return nil, failure(step, "the "+what+" is too large", unix.EFBIG)
	}
	buf := make([]byte, st.Size)
	// pread: the offset is shared with the helper's descriptor.
	for n := 0; n < len(buf); {
		m, err := unix.Pread(fd, buf[n:], int64(n))
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return nil, failure(step, "cannot read the "+what, err)
		}
		if m == 0 {
			return nil, failure(step, "the "+what+" is short", nil)
		}
		n += m
	}
	return buf, nil
}

// require refuses the execution where a layer that the server demands is a skip.
func (p *process) require() *spec.Failure {
	for _, tag := range p.spec.Require {
		for _, s := range p.report.Skips {
			if s.Tag == tag {
				return failure(spec.StepRequire, "the layer "+strconv.Quote(tag)+
					" is required and not there: "+s.Reason, nil)
			}
		}
	}
	return nil
}

// allowed waits for the helper's word that the command may run; it never comes from one
// that was killed. On Linux it comes when bubblewrap's init has bound its life to its
// supervisor's, which it does only after it forked this process, and getppid() says
// nothing inside a pid namespace. On macOS it comes when the kernel will tell the helper
// of execve.
func allowed() bool {
	var word [1]byte
	for {
		n, err := unix.Read(spec.ReportFD, word[:])
		if err != unix.EINTR {
			return err == nil && n == len(word)
		}
	}
}
