package spec

import "sandboxd/internal/mpack"

// Append writes c as one canonical map.
func (c Command) Append(dst []byte) []byte { return c.fields(mpack.AppendMap(dst, 4)) }

func (c Command) fields(dst []byte) []byte {
	dst = appendList(dst, "argv", c.Argv, appendBin)
	dst = appendList(dst, "env", c.Env, appendBin)
	dst = appendList(dst, "path", c.Path, appendBin)
	return appendOctets(dst, "cwd", c.Cwd)
}

// Append writes s as one canonical map.
func (s Spec) Append(dst []byte) []byte {
	dst = s.Command.fields(mpack.AppendMap(dst, 20))
	dst = appendTruth(dst, "standby", s.Standby)
	dst = appendTruth(dst, "jailed", s.Jailed)
	dst = appendList(dst, "namespaces", s.Namespaces, appendNamespace)
	dst = appendTruth(dst, "no_caps", s.NoCaps)
	dst = appendTruth(dst, "no_userns", s.NoUserns)
	dst = appendView(mpack.AppendStr(dst, "view"), s.View)
	dst = appendList(dst, "checks", s.Checks, appendCheck)
	dst = appendLandlock(mpack.AppendStr(dst, "landlock"), s.Landlock)
	dst = appendSeccomp(mpack.AppendStr(dst, "seccomp"), s.Seccomp)
	dst = appendNumber(dst, "fsize_bytes", s.FsizeBytes)
	dst = appendNumber(dst, "cpu_s", s.CPUSeconds)
	dst = appendNumber(dst, "mem_bytes", s.MemBytes)
	dst = appendNumber(dst, "pids", s.Pids)
	dst = appendOctets(dst, "denied", s.Denied)
	dst = appendOctets(dst, "allowed", s.Allowed)
	return appendList(dst, "require", s.Require, mpack.AppendStr)
}

func appendNamespace(dst []byte, n Namespace) []byte {
	dst = appendText(mpack.AppendMap(dst, 2), "name", n.Name)
	return appendNumber(dst, "ino", n.Ino)
}

func appendView(dst []byte, v View) []byte {
	dst = appendList(mpack.AppendMap(dst, 3), "mounts", v.Mounts, appendMount)
	dst = appendList(dst, "host", v.Host, appendHostMount)
	return appendList(dst, "devices", v.Devices, mpack.AppendStr)
}

func appendMount(dst []byte, m Mount) []byte {
	dst = appendOctets(mpack.AppendMap(dst, 4), "path", m.Path)
	dst = appendNumber(dst, "holds", uint64(m.Holds))
	dst = appendTruth(dst, "read_only", m.ReadOnly)
	return appendTruth(dst, "optional", m.Optional)
}

func appendHostMount(dst []byte, m HostMount) []byte {
	return appendText(appendOctets(mpack.AppendMap(dst, 2), "path", m.Path), "device", m.Device)
}

func appendCheck(dst []byte, c Check) []byte {
	dst = appendOctets(mpack.AppendMap(dst, 6), "path", c.Path)
	dst = appendText(dst, "what", c.What)
	dst = appendNumber(dst, "dev", c.ID.Dev)
	dst = appendNumber(dst, "ino", c.ID.Ino)
	dst = appendNumber(dst, "rdev", c.Rdev)
	return appendText(dst, "list", c.List)
}

func appendLandlock(dst []byte, l Landlock) []byte {
	dst = appendTruth(mpack.AppendMap(dst, 7), "enabled", l.Enabled)
	dst = appendText(dst, "reason", l.Reason)
	dst = appendList(dst, "rules", l.Rules, appendRule)
	dst = appendTruth(dst, "deny_net", l.DenyNet)
	dst = appendTruth(dst, "scope", l.Scope)
	dst = appendTruth(dst, "nested_userns", l.NestedUserns)
	return appendTruth(dst, "name_lacking", l.NameLacking)
}

func appendRule(dst []byte, rule Rule) []byte {
	dst = appendOctets(mpack.AppendMap(dst, 3), "path", rule.Path)
	dst = appendNumber(dst, "access", uint64(rule.Access))
	return appendTruth(dst, "optional", rule.Optional)
}

func appendSeccomp(dst []byte, s Seccomp) []byte {
	dst = appendTruth(mpack.AppendMap(dst, 2), "deny_net", s.DenyNet)
	return appendTruth(dst, "deny_trace", s.DenyTrace)
}
