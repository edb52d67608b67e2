package spec

import "sandboxd/internal/mpack"

// Bounds of a specification. The helper's own limits (one frame, one policy) are
// far below; these only keep a wrong memfd from becoming a large allocation.
const (
	MaxSpec   = 1 << 26 // bytes in the memfd
	maxValues = 1 << 20 // values in any one list
)

// DecodeSpec reads exactly one specification; every key is required, unknown and
// repeated ones are errors. The error is a *mpack.Error.
func DecodeSpec(b []byte) (Spec, error) {
	var s Spec
	err := whole(b, object(
		mpack.Field{Name: "argv", Read: list(&s.Argv, maxValues, octets)},
		mpack.Field{Name: "env", Read: list(&s.Env, maxValues, octets)},
		mpack.Field{Name: "path", Read: list(&s.Path, maxValues, octets)},
		mpack.Field{Name: "cwd", Read: octets(&s.Cwd)},
		mpack.Field{Name: "standby", Read: truth(&s.Standby)},
		mpack.Field{Name: "jailed", Read: truth(&s.Jailed)},
		mpack.Field{Name: "namespaces", Read: list(&s.Namespaces, maxKinds, readNamespace)},
		mpack.Field{Name: "no_caps", Read: truth(&s.NoCaps)},
		mpack.Field{Name: "no_userns", Read: truth(&s.NoUserns)},
		mpack.Field{Name: "view", Read: readView(&s.View)},
		mpack.Field{Name: "checks", Read: list(&s.Checks, maxValues, readCheck)},
		mpack.Field{Name: "landlock", Read: readLandlock(&s.Landlock)},
		mpack.Field{Name: "seccomp", Read: readSeccomp(&s.Seccomp)},
		mpack.Field{Name: "fsize_bytes", Read: number(&s.FsizeBytes)},
		mpack.Field{Name: "cpu_s", Read: number(&s.CPUSeconds)},
		mpack.Field{Name: "mem_bytes", Read: number(&s.MemBytes)},
		mpack.Field{Name: "pids", Read: number(&s.Pids)},
		mpack.Field{Name: "denied", Read: octets(&s.Denied)},
		mpack.Field{Name: "allowed", Read: octets(&s.Allowed)},
		mpack.Field{Name: "require", Read: list(&s.Require, maxValues, text)},
	))
	if err != nil {
		return Spec{}, err
	}
	return s, nil
}

// DecodeCommand reads exactly one command, by the same rules.
func DecodeCommand(b []byte) (Command, error) {
	var c Command
	err := whole(b, object(
		mpack.Field{Name: "argv", Read: list(&c.Argv, maxValues, octets)},
		mpack.Field{Name: "env", Read: list(&c.Env, maxValues, octets)},
		mpack.Field{Name: "path", Read: list(&c.Path, maxValues, octets)},
		mpack.Field{Name: "cwd", Read: octets(&c.Cwd)},
	))
	if err != nil {
		return Command{}, err
	}
	return c, nil
}

func readNamespace(n *Namespace) func(*mpack.Reader) error {
	return object(
		mpack.Field{Name: "name", Read: text(&n.Name)},
		mpack.Field{Name: "ino", Read: number(&n.Ino)},
	)
}

func readView(v *View) func(*mpack.Reader) error {
	return object(
		mpack.Field{Name: "mounts", Read: list(&v.Mounts, maxValues, readMount)},
		mpack.Field{Name: "host", Read: list(&v.Host, maxValues, readHostMount)},
		mpack.Field{Name: "devices", Read: list(&v.Devices, maxValues, text)},
	)
}

func readMount(m *Mount) func(*mpack.Reader) error {
	return object(
		mpack.Field{Name: "path", Read: octets(&m.Path)},
		mpack.Field{Name: "holds", Read: within(&m.Holds, "kind of mount", HoldsFile, HoldsTree)},
		mpack.Field{Name: "read_only", Read: truth(&m.ReadOnly)},
		mpack.Field{Name: "optional", Read: truth(&m.Optional)},
	)
}

// within reads a number that has a meaning: one from first to last.
func within[T ~uint8](p *T, what string, first, last T) func(*mpack.Reader) error {
	return func(r *mpack.Reader) error {
		n, err := r.Uint()
		if err != nil {
			return err
		}
		if n < uint64(first) || n > uint64(last) {
			return r.Fail("unknown %s %d", what, n)
		}
		*p = T(n)
		return nil
	}
}

func readHostMount(m *HostMount) func(*mpack.Reader) error {
	return object(
		mpack.Field{Name: "path", Read: octets(&m.Path)},
		mpack.Field{Name: "device", Read: text(&m.Device)},
	)
}

func readCheck(c *Check) func(*mpack.Reader) error {
	return object(
		mpack.Field{Name: "path", Read: octets(&c.Path)},
		mpack.Field{Name: "what", Read: readWhat(&c.What)},
		mpack.Field{Name: "dev", Read: number(&c.ID.Dev)},
		mpack.Field{Name: "ino", Read: number(&c.ID.Ino)},
		mpack.Field{Name: "rdev", Read: number(&c.Rdev)},
		mpack.Field{Name: "list", Read: text(&c.List)},
	)
}

// readWhat refuses a kind of check that this stage 2 would not know how to make:
// an unknown one passed over would be a claim without a witness.
func readWhat(p *string) func(*mpack.Reader) error {
	return func(r *mpack.Reader) error {
		what, err := r.Str()
		if err != nil {
			return err
		}
		switch what {
		case CheckRoot, CheckMask, CheckPlaceholder, CheckMount, CheckPin:
			*p = what
			return nil
		}
		return r.Fail("unknown kind of check")
	}
}

func readLandlock(l *Landlock) func(*mpack.Reader) error {
	return object(
		mpack.Field{Name: "enabled", Read: truth(&l.Enabled)},
		mpack.Field{Name: "reason", Read: text(&l.Reason)},
		mpack.Field{Name: "rules", Read: list(&l.Rules, maxValues, readRule)},
		mpack.Field{Name: "deny_net", Read: truth(&l.DenyNet)},
		mpack.Field{Name: "scope", Read: truth(&l.Scope)},
		mpack.Field{Name: "nested_userns", Read: truth(&l.NestedUserns)},
		mpack.Field{Name: "name_lacking", Read: truth(&l.NameLacking)},
	)
}

func readRule(rule *Rule) func(*mpack.Reader) error {
	return object(
		mpack.Field{Name: "path", Read: octets(&rule.Path)},
		mpack.Field{Name: "access", Read: within(&rule.Access, "access", AccessRead, AccessConnect)},
		mpack.Field{Name: "optional", Read: truth(&rule.Optional)},
	)
}

func readSeccomp(s *Seccomp) func(*mpack.Reader) error {
	return object(
		mpack.Field{Name: "deny_net", Read: truth(&s.DenyNet)},
		mpack.Field{Name: "deny_trace", Read: truth(&s.DenyTrace)},
	)
}
