package jail

import (
	"errors"
	"time"
)

// walkBound is how long a walk through a tree may take: one that forks faster than it
// can be walked would never end.
const walkBound = 500 * time.Millisecond

var errManyProcesses = errors.New("the processes are too many to be listed in time")

// descendants lists everything below root, root itself not included, by parent
// links: never by process group (one setsid leaves it), nor by namespace (one
// unshare fakes it).
func descendants(t procTable, root int) ([]int, error) {
	var out []int
	seen := map[int]bool{root: true}
	began := time.Now()
	for queue := []int{root}; len(queue) > 0; {
		if time.Since(began) > walkBound {
			return out, errManyProcesses
		}
		kids, err := t.children(queue[0])
		if errors.Is(err, errNoChildrenFile) {
			return descendantsByParent(t, root)
		}
		if err != nil {
			return out, err
		}
		queue = queue[1:]
		for _, k := range kids {
			if !seen[k] {
				seen[k] = true
				out, queue = append(out, k), append(queue, k)
			}
		}
	}
	return out, nil
}

func descendantsByParent(t procTable, root int) ([]int, error) {
	rows, err := t.all()
	if err != nil {
		return nil, err
	}
	byParent := map[int][]int{}
	for _, r := range rows {
		byParent[r.ppid] = append(byParent[r.ppid], r.pid)
	}
	var out []int
	seen := map[int]bool{root: true} // rows are read one by one: they may form a ring
	for queue := []int{root}; len(queue) > 0; queue = queue[1:] {
		for _, k := range byParent[queue[0]] {
			if !seen[k] {
				seen[k] = true
				out, queue = append(out, k), append(queue, k)
			}
		}
	}
	return out, nil
}
