"""Holds sandboxd_client against the golden fixtures and a real helper.

usage: check.py fixtures DIR | check.py helper SANDBOXD WORKSPACE
"""
import faulthandler, json, os, struct, sys, threading, time

import msgpack
from sandboxd_client import CODES, FRAME, KINDS, ChannelError, Helper, Refused, canonical, decode, encode

def raw(case, folder):
    if "file" in case:
        with open(os.path.join(folder, case["file"]), "rb") as f:
            return f.read()
    return b"".join(bytes.fromhex(p["hex"]) * int(p["times"]) for p in case["parts"])

def value(v, like):
    """A value of the manifest with the types of what was decoded, or of the key's rule."""
    if isinstance(like, dict):
        return {k: value(x, like[k]) for k, x in v.items()}
    if isinstance(like, bytes):
        return bytes.fromhex(v["hex"]) * int(v["times"]) if isinstance(v, dict) else bytes.fromhex(v)
    if isinstance(like, list):
        return [value(x, y) for x, y in zip(v, like, strict=True)]
    return int(v) if type(like) is int else v

def frame(b):
    length = struct.unpack(">I", b[:4])[0] if len(b) >= 4 else -1
    if length > FRAME or length != len(b) - 4:
        raise ChannelError("cannot decode a frame: its length is wrong")
    return decode(b[4:])


def fixtures(folder):
    with open(os.path.join(folder, "manifest.json"), encoding="utf-8") as f:
        cases = json.load(f)["cases"]
    done = {"decoded": 0, "encoded": 0, "rejected": 0}
    for c in cases:
        b, about = raw(c, folder), c["name"]
        if c["what"] != "frame":  # a broker sends policies and reads none
            if "error" not in c and c["canonical"]:
                like = msgpack.unpackb(b)
                assert msgpack.packb(canonical(value(c["value"], like))) == b, about
                done["encoded"] += 1
        elif "error" not in c:
            ident, kind, body = frame(b)
            assert (str(ident), kind) == (c["id"], c["kind"]), about
            want = dict(c["value"])
            for k in ("policy", "limits"):  # the manifest has their bytes
                if k in want:
                    assert msgpack.packb(canonical(body[k])).hex() == want.pop(k), about
            assert value(want, {k: body[k] for k in want}) == {k: body[k] for k in want}, about
            assert len(c["value"]) == len(body), about
            done["decoded"] += 1
            if c["canonical"]:
                assert encode(ident, kind, body) == b, about
                done["encoded"] += 1
        elif c["error"]["code"] != "bad_policy":  # what is inside a policy is the helper's to judge
            try:
                frame(b)
            except ChannelError as e:
                versions = ("matching version" in str(e)) == (c["error"]["code"] == "proto_mismatch")
                assert versions or "map key" in str(e), (about, e)  # the library takes no key that is a number
                done["rejected"] += 1
            else:
                raise AssertionError(f"{about} was accepted")
    print(json.dumps(done))

def fails(kind, call, *args, **more):
    try:
        call(*args, **more)
    except kind as e:
        return e
    raise AssertionError(f"{call} of {args} did not fail")

def refused(code, h, *args, **more):
    e = fails(Refused, h.exec, *args, **more)
    assert e.args[0] == code and code in CODES, e

def endings(start, workspace):
    big, begin = bytes(40 << 20), time.monotonic()  # more than the helper holds for a command that reads nothing
    for script in ("sleep 1; echo; exec sleep 600", "exec yes"):  # the second needs a reader to end
        h = start()
        fails(ZeroDivisionError, h.exec, ["sh", "-c", script], workspace, stdin=big, on_output=lambda *out: 1 / 0)
        assert "close" in str(fails(ChannelError, h.exec, ["true"], workspace))
        assert h.close() == 0
    with start() as h:
        threading.Timer(1, h.cancel).start()
        assert h.exec(["sleep", "600"], workspace, stdin=big)["cancelled"]
    with start() as h:  # two ids that are not exec's
        h.send(900, "exec_start", argv=["sleep", "600"], cwd=workspace, env={}, token=b"t")
        refused("busy", h, ["true"], workspace)
        fails(TypeError, h.exec, ["true"], workspace, stdin="no bytes")
        assert h.close() == 0
    with start() as h:
        h.send(1, "hello", proto=4, peer="", features=[])
        assert "proto_mismatch" in str(fails(ChannelError, h.exec, ["true"], workspace))
    h = start()
    h.process.kill(), h.process.wait()
    assert "ended" in str(fails(ChannelError, h.exec, ["true"], workspace, stdin=big))
    h.cancel()
    assert h.close() == -9
    sys.modules[Helper.__module__].HELLO = 1
    for said in ("", "printf '\\0\\0\\0\\1x'; "):
        fails(ChannelError, Helper, "sh", {}, "-c", said + "exec sleep 600")
    assert time.monotonic() - begin < 60, "something waited for a command"

def helper(path, workspace):
    faulthandler.dump_traceback_later(120, exit=True)
    policy = {
        "v": 2, "writable_roots": [workspace], "readable_roots": [], "protected": [workspace + "/secret"],
        "mounts": [], "network": {"mode": "off"}, "env_allow": ["PATH", "GREETING"], "scratch": "tmpfs",
        "limits": dict.fromkeys(("cpu_s", "wall_s", "mem_bytes", "pids", "fsize_bytes", "output_bytes"), 0),
    }
    h = Helper(path, policy, "--require-enforced")
    assert "bwrap" in h.features, h.features

    def sh(script, **more):
        return h.exec(["sh", "-c", script], workspace, **more)

    r = sh('echo "$GREETING$OTHER"; echo err >&2; exit 3', env={"GREETING": "größe", "OTHER": "no"})
    assert (r["code"], r["stdout"], r["stderr"]) == (3, "größe\n".encode(), b"err\n"), r
    assert not r["degraded"] and any(e.startswith("mounts:") for e in r["enforcement"]), r
    big = os.urandom(5 << 20)
    assert sh("cat", stdin=big)["stdout"] == big
    assert sh("echo in > made; cat secret", stdin=b"")["code"] != 0
    assert sh("echo out > /etc/made 2>/dev/null || echo refused")["stdout"] == b"refused\n"
    r = sh("head -c 1000 /dev/zero", limits={**policy["limits"], "output_bytes": 10})
    assert (len(r["stdout"]), r["stdout_truncated"]) == (10, True), r
    seen = []
    sh("echo a; echo b", on_output=lambda stream, data: seen.append(data))
    assert b"".join(seen) == b"a\nb\n", seen
    refused("spawn_failed", h, ["mke"], workspace)
    refused("refused", h, ["true"], workspace, policy={**policy, "writable_roots": [workspace + "/none"]})
    ready = threading.Event()
    threading.Thread(target=lambda: (ready.wait(), h.cancel())).start()
    r = sh("echo ready; exec sleep 600", on_output=lambda stream, data: ready.set())
    assert r["cancelled"] and r["code"] == 143, r
    assert sh("echo still here")["stdout"] == b"still here\n"
    for argv, cwd in ((["true"], "w1"), ([], workspace)):  # not accepted
        refused("malformed_frame", h, argv, cwd)
    assert sh("echo still here")["stdout"] == b"still here\n"
    assert h.close() == 0
    assert fails(ChannelError, h.exec, ["true"], workspace)
    endings(lambda: Helper(path, policy, "--require-enforced"), workspace)
    assert KINDS.keys() >= {"hello", "exec_exit"}
    print("ok")


{"fixtures": fixtures, "helper": helper}[sys.argv[1]](*sys.argv[2:])
