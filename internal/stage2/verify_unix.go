//go:build linux || darwin

package stage2

import (
	"strconv"

	"sandboxd/internal/stage2/spec"
)

// verify looks from inside at the inodes that the helper believes to be mounted: a
// path can have been exchanged between the helper's walk and the bind, and while a
// standby waited. It makes nothing but calls that Landlock leaves alone.
func (p *process) verify() *spec.Failure {
	p.report.Roots, p.report.Masks = 0, 0
	for _, c := range p.spec.Checks {
		var why string
		var err error
		switch c.What {
		case spec.CheckMask, spec.CheckPlaceholder:
			why, err = notHidden(c)
			p.report.Masks++
		case spec.CheckRoot, spec.CheckMount, spec.CheckPin:
			why, err = notSame(c)
			if c.What != spec.CheckPin {
				p.report.Roots++
			}
		default:
			why = "is asked to be a " + c.What + ", which this stage 2 does not know"
		}
		if why != "" {
			return failure(spec.StepVerify, c.List+" "+strconv.Quote(c.Path)+" "+why, err)
		}
	}
	return nil
}
