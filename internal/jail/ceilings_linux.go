package jail

import (
	"errors"
	"os"
	"slices"
	"syscall"
	"time"

	"sandboxd/internal/cgroup"
	"sandboxd/internal/report"
)

// removeBound is how long a cgroup may take to become empty after a kill.
const removeBound = 5 * time.Second

// openBase looks for a place for ceilings and removes what killed helpers left
// there.
func (h *Host) openBase() {
	h.base, h.noBase = cgroup.Open(h.CgroupBase, os.Getenv(cgroup.BaseEnv))
	if h.base != nil {
		h.base.Sweep()
	}
}

// ceilings makes the execution's cgroup, where it asks for one. Only a ceiling
// that stage 2 itself cannot live under is an error.
func (j *job) ceilings() error {
	if !cgroup.Wanted(j.req.Policy.Limits) {
		return nil
	}
	if j.host.base == nil {
		j.noGroup = j.host.noBase
		return nil
	}
	if j.spare != nil {
		j.group = j.spare
		j.loose()
		return nil
	}
	var err error
	j.group, err = j.host.base.Create(j.host.serial.Add(1), j.req.Policy.Limits)
	var small *cgroup.TooSmallError
	if errors.As(err, &small) {
		return refused("%s", small)
	}
	if err != nil {
		j.group, j.noGroup = nil, err.Error()
		return nil
	}
	j.loose()
	return nil
}

// disown leaves the cgroup of a standby to the standby, which was thrown away.
func (j *job) disown(k *keeper) {
	if j.group != nil && j.group == k.job.group {
		j.group = nil
	}
}

// born has the child start inside its cgroup, by clone3(CLONE_INTO_CGROUP): no
// process of the execution ever runs outside.
func (j *job) born(attr *syscall.SysProcAttr) {
	if j.group != nil {
		attr.UseCgroupFD, attr.CgroupFD = true, j.group.FD()
	}
}

// refusedBirths are clone3's answers that may be about the cgroup (cgroup_css_set_fork):
// ENOENT is a border of cgroup namespaces, ENODEV a cgroup that somebody removed.
var refusedBirths = []syscall.Errno{syscall.ENOSYS, syscall.EPERM, syscall.EACCES, syscall.EBUSY, syscall.EOPNOTSUPP, syscall.ENOENT, syscall.ENODEV}

// outside gives the ceilings up after a start that failed, where the cgroup may be
// the reason. It says whether another start makes sense. An entry after the start
// would be a window, so there is none.
func (j *job) outside(err error) bool {
	if j.group == nil || j.host.RequireEnforced || !slices.ContainsFunc(refusedBirths, func(e syscall.Errno) bool { return errors.Is(err, e) }) {
		return false
	}
	j.noGroup = "cannot start a process in the cgroup: " + err.Error()
	_ = j.group.Remove(0)
	j.group = nil
	return true
}

// lowered takes stage 2's share off pids.max once the command's image runs, and no
// sooner: until then stage 2's runtime may start a thread, and dies where it cannot (1
// of 6,000 did). A command that was quicker and used that share is over its ceiling,
// and killed: it would keep what it has.
func (j *job) lowered() {
	if j.group == nil {
		return
	}
	scaffold := uint64(cgroup.Scaffold)
	if j.bwrap == nil {
		scaffold = 0
	}
	err := j.group.LowerTo(scaffold)
	var over *cgroup.ExceededError
	switch {
	case errors.As(err, &over):
		j.unheld = append(j.unheld, err.Error()+"; killed")
		j.killGroup()
	case err != nil:
		j.unheld = append(j.unheld, err.Error())
	}
}

// held is what the ceilings did, read before the cgroup is removed. It is asked for
// twice where --require-enforced demands a forecast.
func (j *job) held() report.Cgroup {
	if j.group == nil {
		return report.Cgroup{Reason: j.noGroup}
	}
	c := report.Cgroup{Applied: true, Allowance: j.group.Allowance()}
	var err error
	c.OOMKill, c.PidsDenied, err = j.group.Events()
	if err != nil && !slices.Contains(j.unheld, err.Error()) {
		j.unheld = append(j.unheld, err.Error())
	}
	return c
}

// killGroup ends everything that was born in the cgroup. An error is not the end:
// what the caller does without a cgroup follows, and dissolve tries again and tells.
func (j *job) killGroup() {
	if j.group != nil {
		_ = j.group.Kill()
	}
}

// dissolve ends whatever is left in the cgroup and removes it.
func (j *job) dissolve() error {
	if j.group == nil {
		return nil
	}
	return errors.Join(j.group.Kill(), j.group.Remove(removeBound))
}
