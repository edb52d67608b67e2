package selftest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"sandboxd/internal/selftest/witness"
	"sandboxd/protocol"
)

func viewProbes() []Probe {
	return []Probe{
		{Name: "proc", Means: "host processes and kernel settings, with / readable and the scratch in a root", Linux: true, Layers: byJail, run: freshProc().probe},
		{Name: "dev", Means: "the host's devices and shared memory, with / readable and the scratch in a root", Linux: true, Layers: byMask, run: freshDev().probe},
		{Name: "policy-hidden", Means: "the policy in what /proc/1 shows", Linux: true, Layers: byJail, run: policyHidden().probe},
		{Name: "environment", Means: "a variable outside the allow-list", run: environment().probe},
		{Name: "descriptors", Means: "an open descriptor above 2", run: descriptors().probe},
		{Name: "planted-link", Means: "a root that an earlier command replaced by a link", run: plantedLink},
		{Name: "setuid", Means: "another user's rights by a set-user-ID program", Layers: []string{protocol.TagNoNewPrivs, protocol.TagBwrap, protocol.TagSeatbelt}, run: setuid().probe},
	}
}

// everything is a host view with the scratch inside its one writable root.
func everything(s *site) protocol.Policy {
	p := s.policy()
	p.ReadableRoots = []string{"/"}
	p.Scratch = s.path("work/scratch")
	return p
}

func makeScratch(_ *lane, s *site) error { return os.MkdirAll(s.path("work/scratch"), 0o755) }

func freshProc() denial {
	return denial{
		role: "hostile", must: []string{"stays", "open2"}, may: []string{"open"}, allowed: []string{"read", "create"},
		setup: makeScratch,
		args: func(l *lane, s *site) []string {
			return []string{"stays=" + l.shared.bait, "open=/proc/sys/kernel/core_pattern", "open2=/proc/self/comm",
				"read=/proc/self/status", "create=" + s.path("work/scratch/new")}
		},
		policy: everything, unjailed: true,
		// The payload may write its own name outside, and nothing but a read-only /proc
		// keeps it from it before Landlock is asked.
		extra: func(_ *lane, _ *site, o outcome) string { return byMount(o, "read-only file system", "open2") },
	}
}

// freshDev has a bait in shared memory, which every user may write, and the first
// device of the host that is not one of the harmless ones.
func freshDev() denial {
	bait := func(s *site) string { return sharedMemory + "/" + prefix + s.nonce }
	return denial{
		role: "file", must: []string{"read"}, may: []string{"stat"}, allowed: []string{"append", "create"}, shown: true,
		setup: func(l *lane, s *site) error {
			// Where the host has no shared memory the control finds nothing.
			_ = l.shared.plantInMemory(bait(s), s.secret)
			return makeScratch(l, s)
		},
		args: func(_ *lane, s *site) []string {
			return []string{"read=" + bait(s), "stat=" + device(), "append=/dev/null", "create=" + s.path("work/scratch/new")}
		},
		policy: everything, unjailed: true,
	}
}

// device is one that a jail's own /dev does not have.
func device() string {
	for _, name := range []string{"kmsg", "mem", "port", "loop-control", "fuse", "kvm", "tty0", "mapper/control"} {
		path := filepath.Join("/dev", name)
		if _, err := os.Lstat(path); err == nil {
			return path
		}
	}
	return "/dev/none-on-this-host"
}

// policyHidden looks for a path of the policy in what init was started with. Where
// it is allowed, the same look at the bait process and at itself finds it.
func policyHidden() denial {
	return denial{
		role: "cmdline", must: []string{"cmdline", "environ"}, allowed: []string{"own"}, unjailed: true,
		args: func(l *lane, s *site) []string { return []string{"1", s.work(), l.shared.bait} },
		controlArgs: func(l *lane, s *site) []string {
			return []string{fmt.Sprint(l.shared.baitPID), l.shared.bait, l.shared.bait}
		},
	}
}

func environment() denial {
	return denial{
		role: "env", must: []string{baitName}, allowed: []string{"PATH"},
		args: func(*lane, *site) []string { return []string{"PATH", baitName} },
		granted: func(s *site) protocol.Policy {
			p := s.policy()
			p.EnvAllow = append(p.EnvAllow, baitName)
			return p
		},
	}
}

// descriptors: this process leaks one on purpose, to its helpers as to the control.
func descriptors() denial {
	return denial{role: "descriptors", must: []string{"descriptors"}, unjailed: true,
		args: func(*lane, *site) []string { return nil }}
}

func setuid() denial {
	return denial{
		role: "setuid", must: []string{"setuid"}, unjailed: true,
		setup:  func(l *lane, s *site) error { return plantSetuid(s) },
		args:   func(_ *lane, s *site) []string { return setuidProgram(s) },
		policy: func(s *site) protocol.Policy { return withRO(s, "setuid") },
	}
}

// plantedLink lets one command replace a directory by a link, and asks for it as a
// root of the next one. The control is the same request with the directory in place.
func plantedLink(ctx context.Context, l *lane, p Probe) Finding {
	s, err := l.site(p.Name)
	if err == nil {
		err = os.Mkdir(s.path("work/state"), 0o755)
	}
	if err != nil {
		return untried(err.Error())
	}
	nested := func() outcome {
		argv := []string{s.probe(), witness.Prefix + "file", s.nonce, s.effect(), "create=" + s.path("work/state/new")}
		return l.jailed(ctx, s, withRW(s, "work/state"), argv, nil)
	}
	if o := nested(); o.ran(false) != "" || !o.is("create", witness.OK) {
		return failed("the control, with the directory in place: " + o.ran(false) + o.answers["create"].detail)
	}
	plant := l.jailed(ctx, s, s.policy(), []string{s.probe(), witness.Prefix + "link", s.nonce, s.effect(), s.path("out"), s.path("work/state")}, nil)
	if why := plant.ran(false); why != "" || !plant.is("link", witness.OK) {
		return failed("the link could not be planted: " + why + plant.answers["link"].detail)
	}
	before := snapshot(s.path("out"))
	o := nested()
	switch {
	case snapshot(s.path("out")) != before:
		return failed("the command wrote where the link leads")
	case !refusal(o.err, s.path("work/state")):
		return failed(fmt.Sprintf("it was not refused as a planted link: %v", o.err))
	}
	return enforced("")
}
