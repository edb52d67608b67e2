package policy

import (
	"math"
	"strings"
	"unicode/utf8"

	"sandboxd/protocol"
)

func checkEnv(p protocol.Policy) error {
	for i, name := range p.EnvAllow {
		if name == "" || strings.ContainsAny(name, "=\x00") || !utf8.ValidString(name) {
			return fail(index("env_allow", i), `found %s, expected a variable's name: not empty, UTF-8, without "=" and NUL`, quote(name))
		}
	}
	return nil
}

type limit struct {
	key   string
	value *uint64
}

// limits lists the ceilings with their keys.
func limits(l *protocol.Limits) []limit {
	return []limit{
		{"cpu_s", &l.CPUSeconds}, {"wall_s", &l.WallSeconds}, {"mem_bytes", &l.MemBytes},
		{"pids", &l.Pids}, {"fsize_bytes", &l.FsizeBytes}, {"output_bytes", &l.OutputBytes},
	}
}

func checkLimits(l protocol.Limits) error {
	for _, f := range limits(&l) {
		// rlimits and cgroup files are signed 64-bit numbers to the kernel.
		if *f.value > math.MaxInt64 {
			return fail("limits."+f.key, "found %d, expected at most %d; 0 means no ceiling", *f.value, int64(math.MaxInt64))
		}
	}
	return nil
}
