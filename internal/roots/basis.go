package roots

import "os"

// basis is what a survey rests on besides its layout, for [Reached.Renew].
type basis struct {
	memory   uint64            // version of Writability.Memory
	mountIDs map[string]uint64 // of directories, as asked for
	stamps   map[string]int64  // ctime, in nanoseconds, of what was asked for more than its node
	private  []string          // all that Writability.Private found
	more     bool              // it rests on something that is not noted
	renewed  bool              // "/" is opened again where it is needed
}

func newBasis() basis {
	return basis{mountIDs: map[string]uint64{}, stamps: map[string]int64{}}
}

// rootFD gives "/" after a survey that was not made but renewed.
func (r *Reached) rootFD() (int, error) {
	if !r.basis.renewed {
		return noFD, os.ErrClosed
	}
	if err := r.again(); err != nil {
		return noFD, err
	}
	return r.kept["/"], nil
}

// again lets what a survey met be reached after its Close: an idle helper holds nothing of
// it, but every object on the way has to be the one that it was.
func (r *Reached) again() error {
	if _, held := r.held("/"); held {
		return nil
	}
	fd, node, err := openRoot()
	if err == nil && node.ID != r.layout["/"].ID {
		closeFD(fd)
		err = ErrMoved
	}
	if err == nil {
		r.kept["/"] = fd
	}
	return err
}
