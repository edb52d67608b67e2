// Holds sandboxd-client against the golden fixtures and a real helper.
//
// usage: node check.mjs fixtures DIR | node check.mjs helper SANDBOXD WORKSPACE
import { decode as unpack } from "@msgpack/msgpack";
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { ChannelError, Helper, Refused, decode, encode, encodeMap } from "./sandboxd-client.mjs";

const FRAME = 1 << 24;

const repeated = ({ hex, times }) => Buffer.alloc((Number(times) * hex.length) / 2, hex, "hex");
const raw = (c, dir) => (c.file ? readFileSync(join(dir, c.file)) : Buffer.concat(c.parts.map(repeated)));

// number gives an integer of any width one type.
const number = (v) => (typeof v === "bigint" && Number.isSafeInteger(Number(v)) ? Number(v) : v);

// value is a value of the manifest with the types of what was decoded.
function value(v, like) {
  if (like instanceof Uint8Array) {
    if (typeof v === "string") return Buffer.from(v, "hex");
    return repeated(v);
  }
  if (Array.isArray(like)) {
    assert.equal(v.length, like.length);
    return v.map((x, i) => value(x, like[i]));
  }
  if (typeof like === "object") {
    assert.deepEqual(Object.keys(v).sort(), Object.keys(like).sort());
    return Object.fromEntries(Object.entries(v).map(([k, x]) => [k, value(x, like[k])]));
  }
  return typeof like === "number" || typeof like === "bigint" ? number(BigInt(v)) : v;
}

// normal is what was decoded with bytes and integers of one type.
function normal(v) {
  if (v instanceof Uint8Array) return Buffer.from(v);
  if (Array.isArray(v)) return v.map(normal);
  if (typeof v === "object") return Object.fromEntries(Object.entries(v).map(([k, x]) => [k, normal(x)]));
  return number(v);
}

function frame(b) {
  const length = b.length >= 4 ? b.readUInt32BE() : -1;
  if (length > FRAME || length !== b.length - 4) throw new ChannelError("cannot decode a frame: bad length");
  return decode(b.subarray(4));
}

function fixtures(dir) {
  const done = { decoded: 0, encoded: 0, rejected: 0 };
  for (const c of JSON.parse(readFileSync(join(dir, "manifest.json"), "utf8")).cases) {
    const b = raw(c, dir);
    if (c.what !== "frame") { // a broker sends policies and reads none
      if (c.error || !c.canonical) continue;
      const like = unpack(b, { useBigInt64: true });
      assert.deepEqual(Buffer.from(encodeMap(value(c.value, like))), b, c.name);
      done.encoded++;
    } else if (!c.error) {
      const { id, kind, body } = frame(b), want = { ...c.value };
      assert.deepEqual([String(id), kind], [c.id, c.kind], c.name);
      for (const k of ["policy", "limits"]) { // the manifest has their bytes
        if (k in want) assert.equal(Buffer.from(encodeMap(body[k])).toString("hex"), want[k], c.name);
        if (k in want) want[k] = body[k];
      }
      assert.deepEqual(normal(value(want, body)), normal(body), c.name);
      done.decoded++;
      if (!c.canonical) continue;
      assert.ok(encode(id, kind, body).equals(b), c.name);
      done.encoded++;
    } else if (c.error.code !== "bad_policy") { // what is inside a policy is the helper's to judge
      const versions = (e) => /matching version/.test(e.message) === (c.error.code === "proto_mismatch");
      assert.throws(() => frame(b), (e) => e instanceof ChannelError && versions(e), c.name);
      done.rejected++;
    }
  }
  console.log(JSON.stringify(done));
}

async function endings(start, workspace) {
  const big = Buffer.alloc(40 << 20), begin = Date.now(); // more than the helper holds for a command that reads nothing
  for (const script of ["sleep 1; echo; exec sleep 600", "exec yes"]) { // the second needs a reader to end
    const h = await start(), onOutput = () => { throw new SyntaxError("no"); };
    await assert.rejects(h.exec(["sh", "-c", script], workspace, { stdin: big, onOutput }), SyntaxError);
    await assert.rejects(h.exec(["true"], workspace), /close/);
    assert.equal(await h.close(), 0);
  }
  let h = await start();
  setTimeout(() => h.cancel(), 1000);
  assert.ok((await h.exec(["sleep", "600"], workspace, { stdin: big })).cancelled);
  assert.equal(await h.close(), 0);
  (h = await start()).write(encode(900, "exec_start", { argv: ["sleep", "600"], env: {}, cwd: workspace, token: Buffer.from("t") }));
  await assert.rejects(h.exec(["true"], workspace), (e) => e.code === "busy");
  assert.equal(await h.close(), 0);
  h = await start();
  await (h.child.kill("SIGKILL"), h.ended);
  await assert.rejects(h.exec(["true"], workspace, { stdin: big }), ChannelError);
  assert.equal((await h.cancel(), await h.close()), null);
  (h = await start()).write(encode(1, "hello", { proto: 4, peer: "", features: [] }));
  await assert.rejects(h.exec(["true"], workspace), /matching versions/);
  await assert.rejects(Helper.start("sh", {}, "-c", "printf '\\0\\0\\0\\1x'; exec sleep 600"), ChannelError); // and it is ended
  Helper.hello = 1000;
  await assert.rejects(Helper.start("sh", {}, "-c", "exec sleep 600"), /ended/);
  assert.ok(Date.now() - begin < 60000, "something waited for a command");
}

async function helper(path, workspace) {
  const limits = { cpu_s: 0, wall_s: 0, mem_bytes: 0, pids: 0, fsize_bytes: 0, output_bytes: 0 };
  const policy = {
    v: 2, writable_roots: [workspace], readable_roots: [], protected: [join(workspace, "secret")], mounts: [],
    network: { mode: "off" }, env_allow: ["PATH", "GREETING"], scratch: "tmpfs", limits,
  };
  setTimeout(() => { console.error("hangs"); process.exit(1); }, 120000).unref();
  const start = () => Helper.start(path, policy, "--require-enforced"), h = await start();
  assert.ok(h.features.includes("bwrap"), String(h.features));
  const sh = (script, more) => h.exec(["sh", "-c", script], workspace, more);
  const output = async (script, more) => (await sh(script, more)).stdout.toString();

  let r = await sh('echo "$GREETING$OTHER"; echo err >&2; exit 3', { env: { GREETING: "größe", OTHER: "no" } });
  assert.deepEqual([r.code, String(r.stdout), String(r.stderr)], [3, "größe\n", "err\n"]);
  assert.ok(!r.degraded && r.enforcement.some((e) => e.startsWith("mounts:")), String(r.enforcement));
  const big = randomBytes(5 << 20);
  assert.ok((await sh("cat", { stdin: big })).stdout.equals(big));
  assert.notEqual((await sh("echo in > made; cat secret")).code, 0);
  assert.equal(await output("echo out > /etc/made 2>/dev/null || echo refused"), "refused\n");
  r = await sh("head -c 1000 /dev/zero", { limits: { ...limits, output_bytes: 10 } });
  assert.deepEqual([r.stdout.length, r.stdout_truncated], [10, true]);
  let seen = "";
  await sh("echo a; echo b", { onOutput: (stream, data) => (seen += Buffer.from(data)) });
  assert.equal(seen, "a\nb\n");
  const refused = (code) => (e) => e instanceof Refused && e.code === code;
  await assert.rejects(h.exec(["mke"], workspace), refused("spawn_failed"));
  const missing = { ...policy, writable_roots: [join(workspace, "none")] };
  await assert.rejects(h.exec(["true"], workspace, { policy: missing }), refused("refused"));
  r = await sh("echo ready; exec sleep 600", { onOutput: () => h.cancel() });
  assert.deepEqual([r.cancelled, r.code], [true, 143]);
  assert.equal(await output("echo still here"), "still here\n");
  for (const [argv, cwd] of [[["true"], "w1"], [[], workspace]]) // not accepted
    await assert.rejects(h.exec(argv, cwd), refused("malformed_frame"));
  assert.equal(await output("cat", { stdin: "still here" }), "still here");
  const both = await Promise.allSettled([sh("sleep 0.2"), sh("true")]);
  assert.deepEqual([both[0].value?.code, both[1].reason?.constructor], [0, ChannelError]);
  assert.equal(await h.close(), 0);
  await assert.rejects(sh("true"), ChannelError);
  await endings(start, workspace);
  console.log("ok");
}

await { fixtures, helper }[process.argv[2]](...process.argv.slice(3));
