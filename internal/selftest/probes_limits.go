package selftest

import (
	"context"
	"fmt"
	"os"
	"strings"

	"sandboxd/internal/selftest/witness"
	"sandboxd/protocol"
)

const (
	pidsLimit = 48
	forkCount = 100
	memLimit  = 96 << 20
	memTouch  = 192 << 20
	sizeLimit = 1 << 20
	sizeWrite = 4 << 20
	cpuLimit  = 1    // seconds
	cpuBurn   = 2400 // milliseconds: the kernel kills one second past the limit
	cpuTries  = 9000 // milliseconds: it counts in ticks, which lag behind on a slow machine
	outLimit  = 256 << 10
	outWrite  = 2 << 20
)

func limitProbes() []Probe {
	return []Probe{
		{Name: "pids", Means: "a fork bomb against pids", Layers: []string{protocol.TagCgroupV2, protocol.TagRlimitProcesses}, Linux: true, run: forkBomb().probe},
		{Name: "memory", Means: "a memory hog against mem_bytes", Layers: []string{protocol.TagCgroupV2, protocol.TagRlimitAddressSpace}, Slow: true, run: memoryHog().probe},
		{Name: "file-size", Means: "a file that grows past fsize_bytes", Layers: []string{protocol.TagRlimitFsize}, run: fileSize().probe},
		{Name: "cpu", Means: "a loop that uses more than cpu_s", Layers: []string{protocol.TagRlimitCPU}, Slow: true, run: cpuLoop().probe},
		{Name: "output", Means: "an output flood against output_bytes", run: outputFlood},
	}
}

func limited(set func(*protocol.Limits)) func(*site) protocol.Policy {
	return func(s *site) protocol.Policy {
		p := s.policy()
		set(&p.Limits)
		return p
	}
}

func forkBomb() denial {
	return denial{
		role: "fork", must: []string{"fork"}, granted: strict,
		args:   func(*lane, *site) []string { return []string{fmt.Sprint(forkCount)} },
		policy: limited(func(l *protocol.Limits) { l.Pids = pidsLimit }),
	}
}

func memoryHog() denial {
	return denial{
		role: "memory", must: []string{"memory"}, dies: true, granted: strict,
		args:   func(*lane, *site) []string { return []string{fmt.Sprint(memTouch)} },
		policy: limited(func(l *protocol.Limits) { l.MemBytes = memLimit }),
		extra: func(_ *lane, _ *site, o outcome) string {
			held := platform != "linux" // there RLIMIT_AS, which has no such entry
			for _, e := range o.exit.Enforcement {
				held = held || strings.HasPrefix(e, protocol.TagCgroupV2+":oom_kill=")
			}
			if !held {
				return "the payload died, but the report has no oom_kill"
			}
			return ""
		},
	}
}

func fileSize() denial {
	return denial{
		role: "grow", must: []string{"grow"}, granted: strict,
		args:   func(_ *lane, s *site) []string { return []string{s.path("work/big"), fmt.Sprint(sizeWrite)} },
		policy: limited(func(l *protocol.Limits) { l.FsizeBytes = sizeLimit }),
		extra: func(_ *lane, s *site, _ outcome) string {
			info, err := os.Stat(s.path("work/big"))
			switch {
			case err != nil:
				return "the file was not made: " + err.Error()
			case info.Size() > sizeLimit:
				return fmt.Sprintf("the file has %d bytes, more than the %d allowed", info.Size(), sizeLimit)
			}
			return ""
		},
	}
}

func cpuLoop() denial {
	return denial{
		role: "cpu", must: []string{"cpu"}, dies: true, granted: strict,
		args:        func(*lane, *site) []string { return []string{fmt.Sprint(cpuTries)} },
		controlArgs: func(*lane, *site) []string { return []string{fmt.Sprint(cpuBurn)} },
		policy:      limited(func(l *protocol.Limits) { l.CPUSeconds = cpuLimit }),
	}
}

// outputFlood: without a cap all of it arrives; with one, that much and a mark, and
// the command still comes to its end.
func outputFlood(ctx context.Context, l *lane, p Probe) Finding {
	flood := func(limit uint64) (*site, outcome, error) {
		s, err := l.site(p.Name)
		if err != nil {
			return nil, outcome{}, err
		}
		pol := s.policy()
		pol.Limits.OutputBytes = limit
		argv := []string{s.probe(), witness.Prefix + "flood", s.nonce, s.effect(), fmt.Sprint(outWrite)}
		return s, l.jailed(ctx, s, pol, argv, nil), nil
	}
	_, free, err := flood(0)
	if err != nil {
		return untried(err.Error())
	}
	if why := free.ran(false); why != "" || free.exit.StdoutTruncated || free.exit.StdoutBytes < outWrite {
		return failed(fmt.Sprintf("the control, without a cap: %d bytes arrived %s", free.exit.StdoutBytes, why))
	}
	_, o, err := flood(outLimit)
	switch {
	case err != nil:
		return untried(err.Error())
	case o.err != nil || !o.began || !o.effect:
		return failed("in the jail: " + o.ran(true))
	case !o.exit.StdoutTruncated:
		return failed("the output is not marked as truncated")
	case o.exit.StdoutBytes > outLimit || o.exit.Code != 0:
		return failed(fmt.Sprintf("%d bytes arrived, %d are allowed; exit code %d", o.exit.StdoutBytes, outLimit, o.exit.Code))
	}
	return enforced("")
}
