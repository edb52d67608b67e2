package protocol

import "sandboxd/internal/mpack"

// Kind gives KindHello.
func (Hello) Kind() Kind { return KindHello }

// Append writes the body's canonical map.
func (h Hello) Append(b []byte) []byte {
	b = mpack.AppendMap(b, 3)
	b = mpack.AppendUint(mpack.AppendStr(b, "proto"), h.Proto)
	b = mpack.AppendStr(mpack.AppendStr(b, "peer"), h.Peer)
	return mpack.AppendStrs(mpack.AppendStr(b, "features"), h.Features)
}

// Kind gives KindExecStart.
func (ExecStart) Kind() Kind { return KindExecStart }

// Append writes the body's canonical map. Policy and Limits are written as they
// are, so they have to be canonical maps: see Policy.Append and Limits.Append.
func (s ExecStart) Append(b []byte) []byte {
	n := 4
	if len(s.Policy) > 0 {
		n++
	}
	if len(s.Limits) > 0 {
		n++
	}
	b = mpack.AppendMap(b, n)
	b = mpack.AppendStrs(mpack.AppendStr(b, "argv"), s.Argv)
	b = mpack.AppendStrMap(mpack.AppendStr(b, "env"), s.Env)
	b = mpack.AppendStr(mpack.AppendStr(b, "cwd"), s.Cwd)
	b = mpack.AppendBin(mpack.AppendStr(b, "token"), s.Token)
	if len(s.Policy) > 0 {
		b = append(mpack.AppendStr(b, "policy"), s.Policy...)
	}
	if len(s.Limits) > 0 {
		b = append(mpack.AppendStr(b, "limits"), s.Limits...)
	}
	return b
}

// Kind gives KindExecStdin.
func (ExecStdin) Kind() Kind { return KindExecStdin }

// Append writes the body's canonical map.
func (s ExecStdin) Append(b []byte) []byte {
	b = mpack.AppendMap(b, 2)
	b = mpack.AppendBin(mpack.AppendStr(b, "data"), s.Data)
	return mpack.AppendBool(mpack.AppendStr(b, "eof"), s.EOF)
}

// Kind gives KindExecOut.
func (ExecOut) Kind() Kind { return KindExecOut }

// Append writes the body's canonical map.
func (o ExecOut) Append(b []byte) []byte {
	return o.appendTail(append(o.appendHead(b), o.Data...))
}

// Kind gives KindExecExit.
func (ExecExit) Kind() Kind { return KindExecExit }

// Append writes the body's canonical map.
func (e ExecExit) Append(b []byte) []byte {
	b = mpack.AppendMap(b, 11)
	b = mpack.AppendInt(mpack.AppendStr(b, "code"), int64(e.Code))
	b = mpack.AppendInt(mpack.AppendStr(b, "signal"), int64(e.Signal))
	b = mpack.AppendUint(mpack.AppendStr(b, "stdout_bytes"), e.StdoutBytes)
	b = mpack.AppendUint(mpack.AppendStr(b, "stderr_bytes"), e.StderrBytes)
	b = mpack.AppendBool(mpack.AppendStr(b, "stdout_truncated"), e.StdoutTruncated)
	b = mpack.AppendBool(mpack.AppendStr(b, "stderr_truncated"), e.StderrTruncated)
	b = mpack.AppendStrs(mpack.AppendStr(b, "enforcement"), e.Enforcement)
	b = mpack.AppendBool(mpack.AppendStr(b, "degraded"), e.Degraded)
	b = mpack.AppendUint(mpack.AppendStr(b, "wall_ms"), e.WallMS)
	b = mpack.AppendBool(mpack.AppendStr(b, "timed_out"), e.TimedOut)
	return mpack.AppendBool(mpack.AppendStr(b, "cancelled"), e.Cancelled)
}

// Kind gives KindCancel.
func (Cancel) Kind() Kind { return KindCancel }

// Append writes an empty map.
func (Cancel) Append(b []byte) []byte { return mpack.AppendMap(b, 0) }

// Kind gives KindShutdown.
func (Shutdown) Kind() Kind { return KindShutdown }

// Append writes an empty map.
func (Shutdown) Append(b []byte) []byte { return mpack.AppendMap(b, 0) }

// Kind gives KindHeartbeat.
func (Heartbeat) Kind() Kind { return KindHeartbeat }

// Append writes an empty map.
func (Heartbeat) Append(b []byte) []byte { return mpack.AppendMap(b, 0) }

// Kind gives KindError.
func (ErrorBody) Kind() Kind { return KindError }

// Append writes the body's canonical map.
func (e ErrorBody) Append(b []byte) []byte {
	b = mpack.AppendMap(b, 2)
	b = mpack.AppendStr(mpack.AppendStr(b, "code"), string(e.Code))
	return mpack.AppendStr(mpack.AppendStr(b, "msg"), e.Msg)
}
