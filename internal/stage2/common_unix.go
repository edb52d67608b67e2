//go:build linux || darwin

package stage2

import (
	"strconv"

	"golang.org/x/sys/unix"

	"sandboxd/internal/stage2/spec"
)

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

// stricter is the limit in force where it is below the one that was asked for, else 0.
func stricter(held, asked uint64) uint64 {
	if held < asked {
		return held
	}
	return 0
}
