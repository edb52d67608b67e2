package jail

import "time"

// thawLook is how often a frozen cgroup is looked at.
const thawLook = 50 * time.Millisecond

// thaw waits until a child of the base would run, or nobody wants it. Where somebody froze
// the base a fork does not return, since it waits for the child's execve, and Go's runtime
// may stand still with it: it takes a fork for quick, and lends nobody the processor.
func (j *job) thaw(unwanted <-chan struct{}) {
	for j.group != nil && j.group.Frozen() {
		select {
		case <-unwanted:
			return
		case <-time.After(thawLook):
		}
	}
}

// birth is called before the scaffolding is forked, and what it gives afterwards, for a
// base that is frozen in between: the child is killed, which the freezer lets through, a
// while after nobody wants it.
func (j *job) birth(unwanted <-chan struct{}, grace time.Duration) (over func()) {
	g := j.group
	if g == nil {
		return func() {}
	}
	born := make(chan struct{})
	go func() {
		select {
		case <-born:
			return
		case <-unwanted:
		}
		late := time.NewTimer(grace)
		defer late.Stop()
		select {
		case <-born:
		case <-late.C:
			_ = g.Kill()
		}
	}()
	return func() { close(born) }
}
