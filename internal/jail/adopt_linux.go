package jail

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"sandboxd/internal/host"
	"sandboxd/internal/stage2/spec"
)

// alike says whether the jail of a job would be made from the same as the standby. Of one
// sketch only what the helper hands on can be another.
func (k *keeper) alike(j *job) bool {
	if j.sketch != nil && j.sketch == k.job.sketch {
		return j.noGroup == k.job.noGroup && bytes.Equal(inherited(nil), k.inherited)
	}
	return bytes.Equal(j.recipe(), k.recipe) && bytes.Equal(inherited(nil), k.inherited)
}

// recipe is all that the jail of a job is made from, but for what it inherits.
func (j *job) recipe() []byte {
	s := j.spec
	s.Command, s.Standby = spec.Command{}, false
	b := s.Append(nil)
	for _, arg := range j.bwrap.Args {
		b = append(append(b, arg...), 0)
	}
	for _, in := range j.bwrap.Inherit {
		b = fmt.Appendf(b, "%d %q %v %q\n", in.Kind, in.Path, in.ID, in.Content)
	}
	for _, op := range j.plan.Ops {
		b = fmt.Appendf(b, "%d %q %v %d\n", op.Class, op.Path, op.Node.ID, op.Node.Rdev)
	}
	l := j.req.Policy.Limits
	return fmt.Appendf(b, "%d %d %q", l.MemBytes, l.Pids, j.noGroup)
}

// fits says whether the standby is the jail that a job asks for, untouched. The host
// may have replaced what lies under a mount meanwhile, which takes the mount away.
func (k *keeper) fits(r *Run, j *job) bool {
	if j.bwrap == nil || !k.alike(j) {
		return false
	}
	if k.refilled(j) {
		return false
	}
	// Where the kernel refused the standby's birth in its cgroup, a cgroup that can be
	// made by now has nothing in it.
	if j.group != k.job.group {
		return false
	}
	late := time.NewTimer(LaunchBound)
	defer late.Stop()
	select { // it may be half built, which is still less to wait for
	case <-k.heard:
	case <-r.stop:
		return false
	case <-late.C:
		return false
	}
	if k.p.gone() || !k.parked {
		return false
	}
	ev, err := pollOnce(k.p.table, unix.POLLPRI, 0)
	return err == nil && ev == 0
}

// refilled says whether a file that the standby binds or masks was written: what has its
// number now may have been made since, by bubblewrap in place of one that the host took.
func (k *keeper) refilled(j *job) bool {
	for i, was := range k.job.stamps {
		if was.id != (host.ID{}) && j.plan.Ops[i].Node.Kind != host.Dir && j.stamps[i].filled != was.filled {
			return true
		}
	}
	return false
}

// take gives the process to a job whose jail it is, with its command; false means that
// the standby is gone and the job has to start its own.
func (k *keeper) take(r *Run, j *job) (*process, bool, error) {
	if k.fits(r, j) && k.command(r, j.spec.Command) == nil {
		k.job.group = nil      // the job has it
		j.looked = time.Time{} // since then bubblewrap has made nothing
		return k.p, true, nil
	}
	shared := j.group != nil && j.group == k.job.group
	k.discard()
	if shared {
		j.group, j.spare = nil, nil
		return nil, false, j.ceilings()
	}
	return nil, false, nil
}

// command hands the command over: it is the last that a standby needs. Its init is bound
// to its supervisor, and the payload is followed, since it was parked, so the word by which
// an execution is allowed comes along and saves the way there and back.
func (k *keeper) command(r *Run, c spec.Command) error {
	word := byte(spec.Wait)
	if r.stopReason() == NotStopped && k.p.settled && k.p.waiter != nil {
		word = spec.Go
	}
	f, err := memfd("command", c.Append(nil))
	if err != nil {
		return err
	}
	defer f.Close()
	conn, err := k.p.report.SyscallConn()
	if err != nil {
		return err
	}
	rights := unix.UnixRights(int(f.Fd()))
	var serr error
	err = conn.Control(func(fd uintptr) {
		serr = unix.Sendmsg(int(fd), []byte{word}, rights, nil, unix.MSG_NOSIGNAL)
	})
	k.p.told = word == spec.Go
	return errors.Join(err, serr)
}
