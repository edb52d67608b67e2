// A broker for sandboxd in one file, by protocol/PROTOCOL.md. It needs @msgpack/msgpack 3.
// A frame that does not decode ends the channel. Read all that exec returns: exit code 0 says nothing about a jail.
import { Decoder, encode as pack } from "@msgpack/msgpack";
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
const PROTO = 3, FRAME = 1 << 24, ITEMS = 1 << 18, DEPTH = 16, CHUNK = 65536;
const CODES = "malformed_frame proto_mismatch unknown_kind busy no_exec bad_policy refused spawn_failed".split(" ");
export class ChannelError extends Error {} // the helper is gone, or said something that no helper says
export class Refused extends Error {} // nothing ran; .code is one of CODES
const gone = () => { throw new ChannelError("the helper ended, or sent no frame; its messages are on stderr"); };
const within = (low, high) => (v) => (typeof v === "bigint" || Number.isInteger(v)) && v >= low && v <= high;
const text = (v) => typeof v === "string", flag = (v) => typeof v === "boolean", data = (v) => v instanceof Uint8Array;
const plain = (v) => text(v) && !v.includes("\0");
const words = (v) => Array.isArray(v) && v.length <= ITEMS && v.every(text);
const map = (v) => typeof v === "object" && v !== null && Object.getPrototypeOf(v) === Object.prototype;
const uint = within(0n, (1n << 64n) - 1n), int32 = within(-(2 ** 31), 2 ** 31 - 1);
const ENVELOPE = { v: within(1, 1), id: uint, kind: text, body: map }, OPTIONAL = ["policy", "limits"];
const KINDS = { // the keys in the order in which they are sent
  hello: { proto: within(PROTO, PROTO), peer: text, features: words },
  exec_start: { argv: (v) => words(v) && v.length > 0 && v.every(plain),
    env: (v) => map(v) && Object.entries(v).every(([k, s]) => /^[^=\0]+$/.test(k) && plain(s)),
    cwd: (v) => plain(v) && v[0] === "/" && Buffer.byteLength(v) < 4096, token: (v) => data(v) && v.length > 0,
    policy: map, limits: map },
  exec_stdin: { data, eof: flag },
  exec_out: { stream: (v) => v === "stdout" || v === "stderr", data, bytes: uint, truncated: flag },
  exec_exit: { code: int32, signal: int32, stdout_bytes: uint, stderr_bytes: uint, stdout_truncated: flag,
    stderr_truncated: flag, enforcement: words, degraded: flag, wall_ms: uint, timed_out: flag, cancelled: flag },
  cancel: {}, shutdown: {}, heartbeat: {}, error: { code: (v) => CODES.includes(v), msg: text },
};

// canonical sorts keys by their bytes at every level: a policy, limits or env. The library
// takes a bigint as 64 bits, and a larger number than 32 bits as a float.
export function canonical(v) {
  if (typeof v === "number" && v > 0xffffffff) return BigInt(v);
  if (Array.isArray(v)) return v.map(canonical);
  if (!map(v)) return v;
  const keys = Object.keys(v).sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
  return Object.fromEntries(keys.map((k) => [k, canonical(v[k])]));
}
export const encodeMap = (v) => pack(canonical(v), { useBigInt64: true });
export function encode(id, kind, body) {
  const keys = Object.keys(KINDS[kind]).filter((k) => body[k] !== undefined);
  const inner = Object.fromEntries(keys.map((k) => [k, canonical(body[k])])), size = Buffer.alloc(4);
  const packed = pack({ v: 1, id: canonical(id), kind, body: inner }, { useBigInt64: true, maxDepth: DEPTH });
  size.writeUInt32BE(packed.length);
  return Buffer.concat([size, packed]);
}

// Strict refuses what the library lets pass: floats for integers, invalid UTF-8, equal keys.
class Strict extends Decoder {
  keys = 0;
  constructor() { super({ useBigInt64: true, mapKeyConverter: (k) => (this.keys++, k) }); }
  readF32() { throw new RangeError("a float"); }
  readF64() { throw new RangeError("a float"); }
  decodeUtf8String(length, header) {
    const at = this.pos + header, found = super.decodeUtf8String(length, header);
    new TextDecoder("utf-8", { fatal: true }).decode(this.bytes.subarray(at, at + length));
    return found;
  }
  check(v, depth) { // counts levels, and the keys that are left
    if (!map(v) && !Array.isArray(v)) return;
    if (depth === DEPTH) throw new RangeError("too deep");
    if (map(v)) this.keys -= Object.keys(v).length;
    for (const inner of Object.values(v)) this.check(inner, depth + 1);
  }
}
const fits = (v, rules) => Object.keys(v).every((k) => Object.hasOwn(rules, k) && rules[k](v[k])) &&
  Object.keys(rules).every((k) => Object.hasOwn(v, k) || OPTIONAL.includes(k));
export function decode(packed) { // one frame without its length; an integer may be a bigint
  try {
    const d = new Strict(), frame = d.decode(packed);
    d.check(frame, 0);
    if (frame?.kind === "hello" && uint(frame.body?.proto) && frame.body.proto != PROTO)
      throw new RangeError(`it speaks exec protocol ${frame.body.proto}, this client ${PROTO}: use a matching version of both`);
    if (d.keys !== 0 || !map(frame) || !fits(frame, ENVELOPE) || (frame.id == 0 && frame.kind !== "error") ||
      !Object.hasOwn(KINDS, frame.kind) || !fits(frame.body, KINDS[frame.kind])) throw new RangeError("it breaks the rules");
    return frame;
  } catch (e) {
    throw new ChannelError(`cannot decode a frame: ${e.message}`);
  }
}

export class Helper { // one helper, one command at a time; policy is an object, or its msgpack
  static hello = 60000; last = 1; runs = false; frames = this.read(); // hello: milliseconds until the helper has said it
  static async start(path, policy, ...flags) {
    const h = new Helper(), base = data(policy) ? policy : encodeMap(policy);
    h.child = spawn(path, flags, { stdio: ["pipe", "pipe", "inherit", "pipe"] }); // the last is descriptor 3
    (h.ended = once(h.child, "close")).catch(() => {}); // no such program: next says that there is no frame
    for (const pipe of [h.child.stdin, h.child.stdio[3]]) pipe.on("error", () => {});
    h.child.stdio[3].end(base);
    const late = setTimeout(() => h.child.kill("SIGKILL"), Helper.hello); // next then says that it ended
    h.features = (await h.next().catch((e) => { throw h.child.kill("SIGKILL"), e; }).finally(() => clearTimeout(late))).body.features;
    await h.write(encode(1, "hello", { proto: PROTO, peer: "node", features: [] }));
    return h;
  }
  async *read() {
    let held = Buffer.alloc(0);
    for await (const chunk of this.child.stdout) {
      held = Buffer.concat([held, chunk]);
      for (let end; held.length >= 4 && (end = held.readUInt32BE() + 4) <= held.length; held = held.subarray(end))
        yield decode(held.subarray(4, end));
      if (held.length >= 4 && held.readUInt32BE() > FRAME) break;
    }
  }
  next = async () => (await this.frames.next()).value ?? gone();
  rest = async () => { try { for await (const frame of this.frames); } catch {} }; // unread, it holds the helper up
  write = (frame) => new Promise((done) => this.child.stdin.write(frame, done)).then((e) => e && gone()); // "drain" may never come
  async feed(id, input) {
    for (let at = 0; at === 0 || at < input.length; at += CHUNK)
      await this.write(encode(id, "exec_stdin", { data: input.subarray(at, at + CHUNK), eof: at + CHUNK >= input.length }));
  }
  // exec gives exec_exit's body with stdout and stderr added, unless onOutput(stream, data) takes them; if that throws, close.
  async exec(argv, cwd, { env = {}, stdin = "", onOutput, policy, limits } = {}) {
    if (this.runs) throw new ChannelError("one command at a time; where an exec was left before its end, close this helper");
    const id = ++this.last, input = Buffer.from(stdin), got = { stdout: [], stderr: [] };
    const take = onOutput ?? ((stream, bytes) => got[stream].push(Buffer.from(bytes)));
    const start = encode(id, "exec_start", { argv, env, cwd, token: randomBytes(16), policy, limits });
    this.runs = true;
    this.write(start).then(() => this.feed(id, input)).catch(() => {}); // the helper ended: the loop says so
    for (;;) {
      const { id: whose, kind, body } = await this.next(), code = kind === "error" ? body.code : "";
      if (whose == id && (kind === "exec_exit" || !["", "no_exec", "proto_mismatch"].includes(code))) {
        this.runs = false;
        if (code) throw Object.assign(new Refused(`${code}: ${body.msg}`), { code });
        return { ...body, stdout: Buffer.concat(got.stdout), stderr: Buffer.concat(got.stderr) };
      }
      if (kind === "exec_out" && whose == id)
        try { take(body.stream, body.data); } catch (e) { throw this.rest(), e; }
      else if (kind !== "heartbeat" && (!code || code === "proto_mismatch" || whose == 0))
        throw this.rest(), new ChannelError(`unexpected ${kind}: ${body.msg ?? ""}`); // other errors end nothing
    }
  }
  urge(sent) { // what must not wait behind input that no command reads
    const late = setTimeout(() => this.child.kill(), 1000); // SIGTERM: it ends in order, too
    return sent.catch(() => {}).finally(() => clearTimeout(late)); // exec says that it ended
  }
  cancel = () => this.urge(this.write(encode(this.last, "cancel", {}))); // exec returns, with cancelled
  async close() { // 0 is the proof of an orderly end
    this.urge(new Promise((done) => this.child.stdin.end(done)));
    if (!this.runs) this.rest(); // else exec reads
    for (const seconds of [30, 5]) {
      const end = await Promise.race([this.ended, sleep(seconds * 1000, null, { ref: false })]);
      if (end) return end[0];
      this.child.kill("SIGKILL");
    }
  }
}
