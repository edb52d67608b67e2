//go:build !linux

package roots

import "errors"

// Watch looks after the mounts of a jail: Linux's alone.
type Watch struct{}

// StartWatch fails: there are no mounts to watch here.
func StartWatch(int, []string, func([]string)) (*Watch, error) {
	return nil, errors.New("cannot watch mounts: this system has none")
}

// Stop has nothing to end.
func (w *Watch) Stop() ([]string, error) { return nil, nil }
