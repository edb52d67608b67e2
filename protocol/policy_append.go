package protocol

import "sandboxd/internal/mpack"

// Append writes the policy's canonical map: every map in it, the outermost
// included, has its keys sorted by their bytes. It writes what it is given; a nil
// list is an empty one, and Allow and Proxy are written in mode "proxy" alone.
func (p Policy) Append(b []byte) []byte {
	b = mpack.AppendMap(b, 9)
	b = mpack.AppendStrs(mpack.AppendStr(b, "env_allow"), p.EnvAllow)
	b = p.Limits.Append(mpack.AppendStr(b, "limits"))
	b = mpack.AppendArray(mpack.AppendStr(b, "mounts"), len(p.Mounts))
	for _, m := range p.Mounts {
		b = m.append(b)
	}
	b = p.Network.append(mpack.AppendStr(b, "network"))
	b = mpack.AppendStrs(mpack.AppendStr(b, "protected"), p.Protected)
	b = mpack.AppendStrs(mpack.AppendStr(b, "readable_roots"), p.ReadableRoots)
	b = mpack.AppendStr(mpack.AppendStr(b, "scratch"), p.Scratch)
	b = mpack.AppendUint(mpack.AppendStr(b, "v"), PolicyVersion)
	return mpack.AppendStrs(mpack.AppendStr(b, "writable_roots"), p.WritableRoots)
}

// Append writes the ceilings' canonical map, keys sorted.
func (l Limits) Append(b []byte) []byte {
	b = mpack.AppendMap(b, 6)
	b = mpack.AppendUint(mpack.AppendStr(b, "cpu_s"), l.CPUSeconds)
	b = mpack.AppendUint(mpack.AppendStr(b, "fsize_bytes"), l.FsizeBytes)
	b = mpack.AppendUint(mpack.AppendStr(b, "mem_bytes"), l.MemBytes)
	b = mpack.AppendUint(mpack.AppendStr(b, "output_bytes"), l.OutputBytes)
	b = mpack.AppendUint(mpack.AppendStr(b, "pids"), l.Pids)
	return mpack.AppendUint(mpack.AppendStr(b, "wall_s"), l.WallSeconds)
}

func (m Mount) append(b []byte) []byte {
	b = mpack.AppendMap(b, 3)
	b = mpack.AppendStr(mpack.AppendStr(b, "access"), string(m.Access))
	b = mpack.AppendStr(mpack.AppendStr(b, "path"), m.Path)
	return mpack.AppendBool(mpack.AppendStr(b, "required"), m.Required)
}

func (n Network) append(b []byte) []byte {
	if n.Mode != NetProxy {
		return mpack.AppendStr(mpack.AppendStr(mpack.AppendMap(b, 1), "mode"), string(n.Mode))
	}
	b = mpack.AppendMap(b, 3)
	b = mpack.AppendStrs(mpack.AppendStr(b, "allow"), n.Allow)
	b = mpack.AppendStr(mpack.AppendStr(b, "mode"), string(n.Mode))
	return mpack.AppendStr(mpack.AppendStr(b, "proxy"), n.Proxy)
}
