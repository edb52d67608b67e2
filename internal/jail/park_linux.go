package jail

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"sandboxd/internal/roots"
	"sandboxd/internal/stage2/spec"
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

	job       *job
	p         *process
	recipe    []byte
	inherited []byte

	heard  chan struct{} // closed: stage 2 said something, and what follows is set
	parked bool          // it waits for a command
}

// parkable says whether this job's jail may wait: an idle helper leaves nothing in a
// workspace, and a large view costs too much to build on suspicion.
func (j *job) parkable() bool {
	return j.jailed() && j.bwrap != nil && len(j.plan.Ops) <= parkOps
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
	if err == nil && j.group != nil && j.group.Frozen() {
		err = errNoStandby
	}
	if err == nil {
		k.recipe, k.inherited = j.recipe(), inherited(nil)
		j.spec.Standby, j.spec.Command = true, spec.Command{}
		born := j.birth(k.drop, 0)
		k.p, err = k.host.spawn(j)
		born()
	}
	if j.reached != nil {
		_ = j.reached.Close()
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
	buf := letters.get()
	m, err := receive(k.p.report, buf)
	letters.put(buf)
	k.job.built = time.Now()
	if err != nil || m.Parked == nil {
		m.close()
		return // it failed: the execution that comes builds its own
	}
	k.host.self.works.Store(true)
	k.p.began = true
	err = k.p.follow(realProc{}, m)
	k.p.findInit(realProc{}, m.pid)
	if k.p.init == 0 || err != nil {
		return
	}
	k.p.table, k.p.tableErr = roots.OpenMounts(k.p.init)
	k.parked = k.p.tableErr == nil
}

// discard ends the jail. Nothing of a command ever ran in it.
func (k *keeper) discard() {
	_ = k.p.report.SetReadDeadline(time.Unix(1, 0))
	k.p.signalGroup(unix.SIGKILL)
	<-k.heard
	err := k.p.scrap(k.host, k.job.killGroup)
	k.host.remains(errors.Join(err, k.job.release()))
}
