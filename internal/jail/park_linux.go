package jail

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"sandboxd/internal/roots"
	"sandboxd/internal/stage2/spec"
	"sandboxd/protocol"
)

// A standby is a jail that was built before its command is known: stage 2 waits in it
// with everything applied that the policy alone decides. It is used for an execution
// whose own plan, made at its exec_start like any other, asks for exactly this jail;
// else it is thrown away. So a report, a refusal and a view are those of a jail that
// was built afresh.

// Bounds of a standby. A parked jail holds about 4 MB and the mounts of its view.
const (
	parkDelay = time.Millisecond // a helper that is to end, or has work, builds none
	parkLimit = 30 * time.Second // how long one waits for a command
	parkOps   = 512              // operations of the largest plan that is kept ready

	// parkPatience is how long an execution waits for one that is being prepared.
	parkPatience = 2 * time.Second
)

// errNoStandby says that a plan is built only when it is needed.
var errNoStandby = errors.New("no standby for this plan")

// keeper owns one standby. An execution that takes the jail runs in its goroutine.
type keeper struct {
	host  *Host
	adopt chan *Run
	drop  chan struct{} // closed: throw it away
	over  chan struct{} // closed: adopted or gone

	job    *job
	p      *process
	recipe []byte

	heard  chan struct{} // closed: stage 2 said something, and what follows is set
	parked bool          // it waits for a command
}

// parkable says whether this job's jail may wait: an idle helper leaves nothing in a
// workspace, and a large view costs too much to build on suspicion.
func (j *job) parkable() bool {
	return j.jailed() && j.bwrap != nil && len(j.plan.Ops) <= parkOps
}

// recipe is all that the jail of a job is made from.
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

// run builds the jail and keeps it until somebody takes it or nobody wants it. An
// execution that finds it over runs by itself.
func (k *keeper) run(req Request) {
	defer close(k.over)
	defer k.host.forget(k)
	select {
	case <-k.drop:
		return
	case r := <-k.adopt:
		r.main(k.host, nil)
		return
	case <-time.After(parkDelay):
	}
	built := k.build(req)
	if k.job.holds {
		defer k.host.standing.holding.Done()
	}
	if !built {
		return
	}
	limit := time.NewTimer(parkLimit)
	defer limit.Stop()
	go k.hear()
	select {
	case r := <-k.adopt:
		r.main(k.host, k)
	case <-k.drop:
		k.discard()
	case <-limit.C:
		k.host.forget(k)
		k.discard()
	}
}

// build makes the jail. It is false where there can be none; whatever is the matter
// is told to the execution that asks.
func (k *keeper) build(req Request) bool {
	j := &job{host: k.host, req: req, facts: k.host.Facts, standby: true}
	err := j.build()
	if err == nil {
		k.recipe = j.recipe()
		j.spec.Standby, j.spec.Command = true, spec.Command{}
		k.p, err = k.host.spawn(j)
	}
	if j.reached != nil {
		_ = j.reached.Close()
		j.reached = nil
	}
	k.job = j
	if err != nil {
		k.host.remains(j.release())
		return false
	}
	return true
}

// hear waits for stage 2 to say that it is ready, and has the kernel note what happens
// to its mounts from then on.
func (k *keeper) hear() {
	defer close(k.heard)
	buf := letters.Get().(*[]byte)
	m, err := receive(k.p.report, *buf)
	letters.Put(buf)
	defer m.close()
	if err != nil || m.Parked == nil {
		return // it failed: the execution that comes builds its own
	}
	k.p.findInit(realProc{}, m.pid)
	if k.p.init == 0 {
		return
	}
	k.p.table, k.p.tableErr = roots.OpenMounts(k.p.init)
	k.parked = k.p.tableErr == nil
}

// fits says whether the standby is the jail that a job asks for, untouched. The host
// may have replaced what lies under a mount meanwhile, which takes the mount away.
func (k *keeper) fits(r *Run, j *job) bool {
	if j.bwrap == nil || !bytes.Equal(j.recipe(), k.recipe) {
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
	k.p.mu.Lock()
	gone := k.p.reaped
	k.p.mu.Unlock()
	if gone || !k.parked {
		return false
	}
	ev, err := pollOnce(k.p.table, unix.POLLPRI, 0)
	return err == nil && ev == 0
}

// take gives the process to a job whose jail it is, with its command; false means that
// the standby is gone and the job has to start its own.
func (k *keeper) take(r *Run, j *job) (*process, bool, error) {
	if k.fits(r, j) && k.command(j.spec.Command) == nil {
		k.job.group = nil // the job has it
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

// command hands the command over: it is the last that a standby needs.
func (k *keeper) command(c spec.Command) error {
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
		serr = unix.Sendmsg(int(fd), []byte{0}, rights, nil, unix.MSG_NOSIGNAL)
	})
	return errors.Join(err, serr)
}

// discard ends the jail. Nothing of a command ever ran in it.
func (k *keeper) discard() {
	_ = k.p.report.SetReadDeadline(time.Unix(1, 0))
	k.p.signalGroup(unix.SIGKILL)
	<-k.heard
	err := k.p.scrap(k.host, k.job.killGroup)
	k.host.remains(errors.Join(err, k.job.release()))
}

// Ready has the jail of a policy built ahead, where that is wanted: the next execution
// is likely to ask for it.
func (h *Host) Ready(p protocol.Policy) { h.park(Request{Policy: p, Argv: []string{"true"}, Cwd: "/"}) }

// park starts a keeper, unless one is there or an execution runs.
func (h *Host) park(req Request) {
	h.standing.Lock()
	defer h.standing.Unlock()
	if h.NoStandby || h.standing.closed || h.standing.running > 0 || h.standing.keeper != nil || !(&job{facts: h.Facts}).jailed() {
		return
	}
	k := &keeper{host: h, adopt: make(chan *Run), drop: make(chan struct{}), over: make(chan struct{}), heard: make(chan struct{})}
	h.standing.keeper = k
	go k.run(req)
}

// forget takes a keeper out of the host's hands.
func (h *Host) forget(k *keeper) {
	h.standing.Lock()
	defer h.standing.Unlock()
	if h.standing.keeper == k {
		h.standing.keeper = nil
	}
}

// launch runs an execution in the standby's goroutine, or in its own.
func (h *Host) launch(r *Run) {
	h.standing.Lock()
	k := h.standing.keeper
	h.standing.keeper = nil
	h.standing.running++
	h.standing.Unlock()
	if k == nil {
		r.main(h, nil)
	} else {
		late := time.NewTimer(parkPatience)
		defer late.Stop()
		select {
		case k.adopt <- r:
			<-r.released
		case <-k.over:
			r.main(h, nil)
		case <-late.C: // a file system may hang under it
			close(k.drop)
			r.main(h, nil)
		}
	}
	h.standing.Lock()
	h.standing.running--
	h.standing.Unlock()
	if x, _ := r.Result(); x != nil {
		h.park(r.req)
	}
}

// hold says whether a keeper may put something on the host. Close waits for those that
// do, and not for one under which a file system hangs: that has nothing there yet.
func (h *Host) hold() bool {
	h.standing.Lock()
	defer h.standing.Unlock()
	if !h.standing.closed {
		h.standing.holding.Add(1)
	}
	return !h.standing.closed
}

// remains notes that a standby leaves something on the host, for Close.
func (h *Host) remains(err error) {
	h.standing.Lock()
	defer h.standing.Unlock()
	if h.standing.left == nil {
		h.standing.left = err
	}
}

// Close throws a standby away, waits until nothing of any is on the host, and says what
// could not be taken away.
func (h *Host) Close() error {
	h.standing.Lock()
	k := h.standing.keeper
	h.standing.keeper, h.standing.closed = nil, true
	h.standing.Unlock()
	if k != nil {
		close(k.drop)
	}
	h.standing.holding.Wait()
	h.standing.Lock()
	defer h.standing.Unlock()
	return h.standing.left
}
