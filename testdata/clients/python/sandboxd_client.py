"""A broker for sandboxd in one file, by protocol/PROTOCOL.md. It needs msgpack (Debian: python3-msgpack).

A frame that does not decode ends the channel. Read all that exec returns: exit code 0 says nothing about a jail."""
import contextlib, os, select, subprocess, tempfile, threading

import msgpack

PROTO, FRAME, ITEMS, DEPTH, HELLO = 3, 1 << 24, 1 << 18, 16, 60  # HELLO: seconds until the helper has said it
CODES = "malformed_frame proto_mismatch unknown_kind busy no_exec bad_policy refused spawn_failed".split()

class ChannelError(Exception): """The helper is gone, or said something that no helper says."""
class Refused(Exception): """Nothing ran; the arguments are the code (one of CODES) and the message."""

def of(kind, rule=lambda v: True):  # in Python True is an int, so the type is compared
    return lambda v: type(v) is kind and rule(v)

text, flag, data, mapping = of(str), of(bool), of(bytes), of(dict)
uint, int32 = of(int, lambda n: 0 <= n < 1 << 64), of(int, lambda n: -1 << 31 <= n < 1 << 31)
plain = of(str, lambda s: "\0" not in s)
words = of(list, lambda v: len(v) <= ITEMS and all(map(text, v)))
KINDS = {  # the keys in the order in which they are sent
    "hello": {"proto": of(int, lambda n: n == PROTO), "peer": text, "features": words},
    "exec_start": {
        "argv": lambda v: words(v) and v and all(map(plain, v)),
        "env": of(dict, lambda v: len(v) <= ITEMS and all(k and "=" not in k and plain(k) and plain(v[k]) for k in v)),
        "cwd": lambda s: plain(s) and s[:1] == "/" and len(s.encode()) < 4096, "token": of(bytes, len),
        "policy": mapping, "limits": mapping},
    "exec_stdin": {"data": data, "eof": flag},
    "exec_out": {"stream": lambda s: s in ("stdout", "stderr"), "data": data, "bytes": uint, "truncated": flag},
    "exec_exit": {"code": int32, "signal": int32, "stdout_bytes": uint, "stderr_bytes": uint, "stdout_truncated": flag,
        "stderr_truncated": flag, "enforcement": words, "degraded": flag, "wall_ms": uint, "timed_out": flag,
        "cancelled": flag},
    "cancel": {}, "shutdown": {}, "heartbeat": {}, "error": {"code": lambda s: s in CODES, "msg": text},
}
ENVELOPE, OPTIONAL = {"v": of(int, lambda n: n == 1), "id": uint, "kind": text, "body": mapping}, {"policy", "limits"}

def canonical(value):  # the bytes of a policy, limits or env: keys sorted at every level
    if isinstance(value, dict):
        return {k: canonical(value[k]) for k in sorted(value, key=str.encode)}
    return [canonical(v) for v in value] if isinstance(value, list) else value

def encode(ident, kind, body):
    inner = {k: canonical(body[k]) for k in KINDS[kind] if k in body}
    packed = msgpack.packb({"v": 1, "id": ident, "kind": kind, "body": inner}, use_bin_type=True)
    return len(packed).to_bytes(4, "big") + packed

def pairs(items):
    if len({key for key, _ in items}) < len(items):  # of two equal keys the library keeps the last
        raise ValueError("duplicate key")
    return dict(items)

def depth(value):
    inner = value.values() if isinstance(value, dict) else value
    return 1 + max(map(depth, inner), default=0) if isinstance(value, (dict, list)) else 0

def decode(packed):  # one frame without its length: (id, kind, body)
    try:
        frame = msgpack.unpackb(packed, raw=False, object_pairs_hook=pairs)
    except Exception as e:  # of several kinds
        raise ChannelError(f"cannot decode a frame: {e}") from e
    if type(frame) is not dict or frame.keys() != ENVELOPE.keys() or not all(ENVELOPE[k](frame[k]) for k in frame) \
            or depth(frame) > DEPTH or not (frame["id"] or frame["kind"] == "error"):
        raise ChannelError("cannot decode a frame: its envelope is wrong")
    ident, kind, body = frame["id"], frame["kind"], frame["body"]
    if kind == "hello" and uint(body.get("proto")) and body["proto"] != PROTO:
        raise ChannelError(f"it speaks exec protocol {body['proto']}, this client {PROTO}: use a matching version of both")
    keys = KINDS.get(kind, {"of no kind": None})
    if not (keys.keys() - OPTIONAL <= body.keys() <= keys.keys() and all(keys[k](body[k]) for k in body)):
        raise ChannelError(f"cannot decode a frame: the body of {kind} is wrong")
    return ident, kind, body

def ready(pipe, events, seconds):
    (poll := select.poll()).register(pipe, events)
    return poll.poll(seconds * 1000)

class Helper:
    """One helper, one command at a time. policy is a dict, or msgpack; flags are the server's."""
    def __init__(self, path, policy, *flags):
        self.last, self.runs, self.writes, self.reads = 1, False, threading.Lock(), threading.RLock()
        with tempfile.NamedTemporaryFile() as f:  # the policy must be descriptor 3
            f.write(policy if isinstance(policy, bytes) else msgpack.packb(canonical(policy)))
            f.flush()
            self.process = subprocess.Popen(["sh", "-c", 'f=$0; exec "$@" 3<"$f"', f.name, path, *flags],
                                            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            (late := threading.Timer(HELLO, self.process.kill)).start()  # read then says that it ended
            try: self.features = self.read()[2]["features"]
            finally: late.cancel(), hasattr(self, "features") or self.process.kill()
        self.send(1, "hello", proto=PROTO, peer="python", features=[])

    def send(self, ident, kind, **body):
        packed = encode(ident, kind, body)
        with self.writes, contextlib.suppress(OSError, ValueError):  # never interleaved; read says that it ended
            self.process.stdin.write(packed)
            self.process.stdin.flush()

    def read(self):
        size = self.process.stdout.read(4)
        length = int.from_bytes(size, "big")
        packed = self.process.stdout.read(length) if len(size) == 4 and length <= FRAME else b""
        if not packed or len(packed) < length:
            raise ChannelError("the helper ended, or sent no frame; its messages are on stderr")
        return decode(packed)

    def exec(self, argv, cwd, env=None, stdin=b"", on_output=None, **replace):
        """Runs argv and returns exec_exit's body with stdout and stderr added, unless on_output(stream,
        data) takes them; where that raises, close. replace: policy=, limits=, as dicts."""
        with self.reads:  # one command at a time
            if self.runs: raise ChannelError("the last exec was left before its command ended: close this helper")
            rest, got, self.last = memoryview(stdin), {"stdout": [], "stderr": []}, self.last + 1
            self.send(self.last, "exec_start", argv=argv, cwd=cwd, env=env or {}, token=os.urandom(16), **replace)
            self.runs = True
            threading.Thread(target=self.feed, args=(self.last, rest), daemon=True).start()
            while True:
                ident, kind, body = self.read()
                code = body["code"] if kind == "error" else ""
                if ident == self.last and (kind == "exec_exit" or code not in ("", "no_exec", "proto_mismatch")):
                    self.runs = False
                    if code: raise Refused(code, body["msg"])
                    return {**body, **{k: b"".join(v) for k, v in got.items()}}
                if kind == "exec_out" and ident == self.last:
                    on_output(body["stream"], body["data"]) if on_output else got[body["stream"]].append(body["data"])
                elif kind != "heartbeat" and (not code or code == "proto_mismatch" or ident == 0):
                    raise ChannelError(f"unexpected {kind}: {body}")  # other errors end nothing

    def feed(self, ident, rest):
        for at in range(0, max(len(rest), 1), 65536):
            self.send(ident, "exec_stdin", data=bytes(rest[at:at + 65536]), eof=at + 65536 >= len(rest))

    def urge(self, act):  # what must not wait behind input that no command reads
        mine = self.writes.acquire(timeout=1)
        with contextlib.suppress(OSError, ValueError):  # it ended, or is closed
            act() if mine and ready(self.process.stdin, select.POLLOUT, 1) else self.process.terminate()  # in order
        self.writes.release() if mine else None

    def cancel(self):  # from any thread; exec returns, with cancelled
        self.urge(lambda: os.write(self.process.stdin.fileno(), encode(self.last, "cancel", {})))

    def close(self):  # 0 is the proof of an orderly end
        self.urge(self.process.stdin.close)
        if self.reads.acquire(timeout=30):  # unread output would hold the helper up
            while ready(self.process.stdout, select.POLLIN, 30) and self.process.stdout.read1(65536): pass
            self.reads.release()
        for seconds in (30, 5):
            with contextlib.suppress(subprocess.TimeoutExpired):
                return self.process.wait(seconds)
            self.process.kill()

    __enter__, __exit__ = lambda self: self, lambda self, *error: self.close() and None
