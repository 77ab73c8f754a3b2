#!/usr/bin/env node
// A scheduler of whole nodes, first come, first served, without a library: it speaks docs/protocol.md by itself.
// It reads `run ID NODES [PROPERTY]` and `end ID`, and prints what it does. usage: fifo.js ipc://PATH|tcp://HOST:PORT
"use strict";
const net = require("net");
const [MORE, LONG, COMMAND] = [1, 2, 4]; // flags of a ZMTP frame
const [TOPIC, PAYLOAD, ROUTE, STREAMING] = [1, 2, 8, 64]; // flags of PROTO
const [ENOENT, EAGAIN, EBUSY, EINVAL, EHOSTDOWN, EHOSTUNREACH, ESTALE, ECANCELED] = [2, 11, 16, 22, 112, 113, 116, 125];
// Failures that pass: the daemon ends, starts, or cannot commit; or a change is on its way to it, or from it to here.
const PASSING = [EAGAIN, EBUSY, EINVAL, EHOSTDOWN, EHOSTUNREACH, ESTALE, ECANCELED];
const [PAUSE, MOST_REFUSALS] = [100, 8]; // milliseconds; with EINVAL or ESTALE, then the job is put aside
const failure = (errnum, text) => Object.assign(new Error(text), { errnum });
const print = (...words) => console.log(words.join(" "));
// The numbers of a range, with leading zeros if it has them: 08, 09 and 10 of `08-10`.
const parseRange = (text) => {
  const [first, last = first] = text.split("-");
  return Array.from({ length: last - first + 1 }, (_, i) => String(Number(first) + i).padStart(first.length, "0"));
};
// The ranks of an IDSET: 0, 3 and 4 of `0,3-4`.
const parseIds = (text) => (text ? text.split(",").flatMap(parseRange).map(Number) : []);
const encodeIds = (ids) => {
  const sorted = [...ids].sort((a, b) => a - b);
  const firsts = sorted.filter((id, i) => sorted[i - 1] !== id - 1);
  const lasts = sorted.filter((id, i) => sorted[i + 1] !== id + 1);
  return firsts.map((first, i) => (first === lasts[i] ? first : `${first}-${lasts[i]}`)).join();
};
// The hosts of a HOSTLIST: login, n08 and n09 of `login,n[08-09]`.
const parseHosts = (text) =>
  (text.match(/([^,[]|\[[^\]]*\])+/g) ?? []).flatMap((word) => {
    const [, prefix, ranges, suffix] = /^(.*)\[(.*)\](.*)$/.exec(word) ?? [];
    return ranges ? ranges.split(",").flatMap(parseRange).map((number) => prefix + number + suffix) : word;
  });

const uint32 = (n) => Buffer.from([n >>> 24, n >>> 16, n >>> 8, n]);
// A frame in the long form, which any size may have.
const frame = (flags, body) => Buffer.concat([Buffer.from([flags | LONG]), uint32(0), uint32(body.length), body]);

// A connection. It does not connect again by itself, as the daemon ends the requests of a connection with it.
class Connection {
  handlers = new Map(); // of the requests that are not answered, by matchtag
  matchtag = 0;
  bytes = Buffer.alloc(0); // received, and not read yet
  constructor(uri) {
    const [, path, host, port] = /^(?:ipc:\/\/(.+)|tcp:\/\/\[?(.+?)\]?:(\d+))$/.exec(uri) ?? [];
    this.socket = net.connect(path ? { path } : { host, port, keepAlive: true, keepAliveInitialDelay: 5000 });
    this.socket.on("error", () => {}); // the next read fails with it
    this.chunks = this.socket[Symbol.asyncIterator]();
  }

  async read(size) {
    while (this.bytes.length < size) {
      const { value, done } = await this.chunks.next();
      if (done) throw failure(ECANCELED, "the daemon is gone");
      this.bytes = Buffer.concat([this.bytes, value]);
    }
    const read = this.bytes.subarray(0, size);
    this.bytes = this.bytes.subarray(size);
    return read;
  }

  // Sends a request after the handshake, and calls the handler of each response. Ends with an error.
  async stream(...request) {
    this.socket.write(Buffer.from(`\xff${"\0".repeat(8)}\x7f\x03\0NULL${"\0".repeat(48)}`, "latin1"));
    if ((await this.read(64)).toString("latin1", 12, 17) !== "NULL\0") throw new Error("the daemon requires CURVE");
    this.socket.write(frame(COMMAND, Buffer.from("\x05READY\x0bSocket-Type\0\0\0\x06DEALER")));
    for (let parts = []; ; ) {
      const [flags] = await this.read(1);
      const size = flags & LONG ? Number((await this.read(8)).readBigUInt64BE()) : (await this.read(1))[0];
      const body = await this.read(size);
      if (flags & COMMAND) this.send(...request); // not before this, the daemon's READY: it would end the connection
      else parts.push(body);
      if (!(flags & (COMMAND | MORE))) this.handle(...parts.splice(0).slice(-2));
    }
  }

  handle(payload, proto) {
    const [flags, errnum, matchtag] = [proto[3], proto.readUInt32BE(12), proto.readUInt32BE(16)];
    const text = flags & PAYLOAD ? payload.toString().replace("\0", "") : "{}";
    this.handlers.get(matchtag)(errnum ? failure(errnum, text) : null, errnum ? null : JSON.parse(text));
    if (!(flags & STREAMING)) this.handlers.delete(matchtag); // this was the last response
  }

  send(topic, payload, flags, handler) {
    this.handlers.set(++this.matchtag, handler);
    const start = Buffer.from([0x8e, 1, 1, TOPIC | PAYLOAD | ROUTE | flags]);
    const proto = Buffer.concat([start, uint32(-1), uint32(0), uint32(-1), uint32(this.matchtag)]);
    const parts = ["", topic, `${JSON.stringify(payload)}\0`].map((part) => frame(MORE, Buffer.from(part)));
    this.socket.write(Buffer.concat([...parts, frame(0, proto)]));
  }
}

// `jobs` are to be run ({id, nodes, property}) or ended ({id}). The rest is as the daemon has told it last.
const state = { jobs: [], isHeld: false };

// A response to the acquire: first the whole state, then changes, and the failure at its end.
function heard(error, response) {
  if (error) throw error;
  if (response.resources) takeOver(response.resources.execution, response.allocations);
  for (const rank of parseIds(response.up)) state.up.add(rank);
  for (const rank of parseIds(response.down)) state.up.delete(rank);
  for (const rank of parseIds(response.shrink)) state.targets.delete(rank);
  mark("add", response["property-add"] ?? response.resources?.execution.properties);
  mark("delete", response["property-remove"]);
  state.expiration = response.expiration ?? state.expiration;
  print(response.resources ? "acquired" : "update", "up", encodeIds(state.up) || "none");
  if (response.resources) print("running", ...[...state.running.keys()].filter((id) => typeof id === "string"));
  schedule();
}

// Nothing known before holds: ranks may differ, and requests without an answer may have been carried out.
function takeOver({ R_lite, nodelist, expiration }, allocations) {
  const ranks = R_lite.flatMap(({ rank, children }) => parseIds(rank).map((one) => [one, children]));
  const hosts = parseHosts(nodelist.join()); // in the order of the ranks
  const target = ([rank, children], i) => [rank, { children, host: hosts[i], properties: new Set([""]) }];
  const targets = new Map(ranks.sort(([a], [b]) => a - b).map(target));
  const name = ({ id, partition, R }) => (partition === "" ? id : R); // other partitions have ids of their own
  const taken = ({ R }) => R.execution.R_lite.flatMap(({ rank }) => parseIds(rank));
  const running = new Map(allocations.map((allocation) => [name(allocation), taken(allocation)]));
  Object.assign(state, { targets, expiration, running, up: new Set(), isHeld: true, isAsking: false });
}

function mark(change, properties = {}) {
  for (const [name, ranks] of Object.entries(properties))
    for (const rank of parseIds(ranks)) state.targets.get(rank)?.properties[change](name);
}

// Carries out one job at a time, ends before runs. Each response calls this again.
function schedule() {
  const job = state.jobs.find(({ nodes }) => !nodes) ?? state.jobs[0];
  if (!job || !state.isHeld || state.isAsking) return;
  const ranks = state.running.get(job.id);
  if (job.nodes && !ranks) allocate(job);
  else if (!job.nodes && ranks) ask(job, "resource.free", { id: job.id }, null, `end ${job.id} ${encodeIds(ranks)}`);
  else drop(job);
}

// The job waits, and all behind it, while its targets are not up and free.
function allocate(job) {
  const busy = new Set([...state.running.values()].flat());
  const fits = ([rank, target]) => state.up.has(rank) && !busy.has(rank) && target.properties.has(job.property);
  const chosen = [...state.targets].filter(fits).slice(0, job.nodes);
  if (chosen.length < job.nodes) return;
  const R_lite = chosen.map(([rank, { children }]) => ({ rank: String(rank), children }));
  const nodelist = chosen.map(([, { host }]) => host);
  const R = { version: 1, execution: { R_lite, nodelist, nslots: job.nodes, expiration: state.expiration } };
  ask(job, "resource.alloc", { id: job.id, R }, chosen.map(([rank]) => rank), `run ${job.id} ${nodelist.join()}`);
}

// Asks for a change after which the job has these ranks. A real scheduler starts the job where this prints the news.
function ask(job, topic, payload, ranks, news) {
  state.isAsking = true;
  state.connection.send(topic, payload, 0, (error) => {
    state.isAsking = false;
    job.refusals = (job.refusals ?? 0) + [EINVAL, ESTALE].includes(error?.errnum);
    if (PASSING.includes(error?.errnum) && job.refusals < MOST_REFUSALS) return setTimeout(schedule, PAUSE);
    const isDone = !error || error.errnum === ENOENT; // an operator has freed it already
    if (isDone) state.running[ranks ? "set" : "delete"](job.id, ranks);
    print(isDone ? news : `aside ${job.id} ${error.message}`);
    drop(job);
  });
}

function drop(job) {
  state.jobs = state.jobs.filter((other) => other !== job);
  setImmediate(schedule);
}

function command(line) {
  const [verb, id, nodes, property = ""] = line.trim().split(/\s+/);
  const isRun = /^run [!-~]{1,64} [1-9]\d*$/.test(`${verb} ${id} ${nodes}`);
  if (isRun) state.jobs.push({ id, nodes: Number(nodes), property });
  if (verb === "end") state.jobs = [...state.jobs.filter((job) => job.id !== id), { id }];
  schedule();
}

let rest = ""; // of the input, behind its last line
const readInput = (text) => {
  const lines = (rest + text).split("\n");
  rest = lines.pop();
  lines.forEach(command);
};

async function main(uri) {
  process.stdin.setEncoding("utf8").on("data", readInput).on("end", () => command(rest));
  for (;;) {
    state.connection = new Connection(uri);
    const acquire = state.connection.stream("resource.acquire", { allocations: true }, STREAMING, heard);
    const end = await acquire.catch((error) => error);
    state.connection.socket.destroy();
    if (!state.targets || !(PASSING.includes(end.errnum) || end.syscall)) throw end;
    if (state.isHeld) print("lost up none");
    state.isHeld = false;
    await new Promise((resolve) => setTimeout(resolve, PAUSE));
  }
}

main(process.argv[2] ?? process.env.RESOURCED_URI ?? "").catch((error) => {
  console.error(`fifo: ${error.message}`);
  process.exit(1);
});
