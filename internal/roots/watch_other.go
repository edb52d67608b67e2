//go:build !linux

package roots

import "errors"

// Watch looks after the mounts of a jail: Linux's alone.
type Watch struct{}

// Loss is a place of the view that is no longer what was planned.
type Loss struct{ Path, How string }

// Judge knows which mounts were planned.
type Judge interface {
	Expected(m Mount, n int) bool
	Own(m Mount, n int) (own, readOnly bool)
	Lost(m Mount) []Loss
	Bare(point string) bool
	Came() []Loss
}

// OpenMounts fails, like StartWatch.
func OpenMounts(int) (int, error) {
	return -1, errors.New("cannot watch mounts: this system has none")
}

// StartWatch fails: there are no mounts to watch here.
func StartWatch(int, []string, Judge, func([]Loss)) (*Watch, error) {
	return nil, errors.New("cannot watch mounts: this system has none")
}

// Stop has nothing to end.
func (w *Watch) Stop() ([]Loss, error) { return nil, nil }

// Close has nothing to let go.
func (w *Watch) Close() {}
