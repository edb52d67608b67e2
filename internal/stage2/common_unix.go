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
	var st unix.Stat_t
	if err := unix.Fstat(spec.SpecFD, &st); err != nil {
		return spec.Spec{}, failure(spec.StepSpec, "cannot stat the specification", err)
	}
	if st.Size > spec.MaxSpec {
		return spec.Spec{}, failure(spec.StepSpec, "the specification is too large", unix.EFBIG)
	}
	buf := make([]byte, st.Size)
	// pread: the offset is shared with the helper's descriptor.
	for n := 0; n < len(buf); {
		m, err := unix.Pread(spec.SpecFD, buf[n:], int64(n))
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return spec.Spec{}, failure(spec.StepSpec, "cannot read the specification", err)
		}
		if m == 0 {
			return spec.Spec{}, failure(spec.StepSpec, "the specification is short", nil)
		}
		n += m
	}
	unix.Close(spec.SpecFD)
	s, err := spec.DecodeSpec(buf)
	if err != nil {
		return spec.Spec{}, failure(spec.StepSpec, "cannot decode the specification", err)
	}
	return s, nil
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
