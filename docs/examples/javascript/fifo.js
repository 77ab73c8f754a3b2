#!/usr/bin/env node
// A scheduler of whole nodes, first come, first served, without a library: it speaks docs/protocol.md itself.
// It reads `run ID NODES [PROPERTY]` and `end ID`. usage: fifo.js ipc://PATH|tcp://HOST:PORT
const [net, readline] = [require("net"), require("readline")];
const [MORE, LONG, COMMAND, TOPIC, PAYLOAD, ROUTE, STREAMING] = [1, 2, 4, 1, 2, 8, 64]; // of ZMTP; of PROTO
const [EAGAIN, EBUSY, EINVAL, EHOSTDOWN, EHOSTUNREACH, ESTALE, ECANCELED] = [11, 16, 22, 112, 113, 116, 125];
const UNDECIDED = [EAGAIN, EHOSTUNREACH, ECANCELED]; // the daemon ends, starts, or cannot commit
const PASSING = [...UNDECIDED, EBUSY, EINVAL, EHOSTDOWN, ESTALE]; // or a change is on its way, to it or here
const [PAUSE, MOST_REFUSALS] = [100, 8]; // milliseconds; with EINVAL or ESTALE, then the job is put aside
const failure = (errnum, text) => Object.assign(new Error(text), { errnum });

// In ranges of a HOSTLIST and of an IDSET, leading zeros are kept: 08, 09 and 10 of `08-10`.
const parseRange = (text) => {
  const [first, last = first] = text.split("-");
  return Array.from({ length: last - first + 1 }, (_, i) => `${+first + i}`.padStart(first.length, "0"));
};
const parseIds = (text) => (text ? text.split(",").flatMap(parseRange).map(Number) : []);
const encodeIds = (ids) => {
  const sorted = [...ids].sort((a, b) => a - b);
  const firsts = sorted.filter((id, i) => sorted[i - 1] !== id - 1);
  const lasts = sorted.filter((id, i) => sorted[i + 1] !== id + 1);
  return firsts.map((first, i) => (first === lasts[i] ? first : `${first}-${lasts[i]}`)).join();
};
const parseHosts = (text) =>
  (text.match(/([^,[]|\[[^\]]*\])+/g) ?? []).flatMap((word) => {
    const [, prefix, ranges, suffix] = /^(.*)\[(.*)\](.*)$/.exec(word) ?? [];
    return ranges ? ranges.split(",").flatMap(parseRange).map((number) => prefix + number + suffix) : word;
  });
const u32 = (n) => [n >>> 24, n >>> 16, n >>> 8, n];
const frame = (flags, body) => Buffer.from([flags | LONG, 0, 0, 0, 0, ...u32(body.length), ...body]); // long

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
    if ((await this.read(64)).toString("latin1", 12, 17) !== "NULL\0") throw new Error("CURVE is required");
    this.socket.write(frame(COMMAND, Buffer.from("\x05READY\x0bSocket-Type\0\0\0\x06DEALER")));
    for (let parts = []; ; ) {
      const [flags] = await this.read(1);
      const size = flags & LONG ? Number((await this.read(8)).readBigUInt64BE()) : (await this.read(1))[0];
      const body = await this.read(size);
      if (flags & COMMAND) this.send(...request); // after the daemon's READY, or it would end the connection
      else parts.push(body);
      if (!(flags & (COMMAND | MORE))) this.handle(...parts.splice(0).slice(-2));
    }
  }
  handle(payload, proto) {
    const [flags, errnum, matchtag] = [proto[3], proto.readUInt32BE(12), proto.readUInt32BE(16)];
    const text = flags & PAYLOAD ? payload.toString().replace("\0", "") : "{}";
    this.handlers.get(matchtag)(errnum ? failure(errnum, text) : null, errnum ? {} : JSON.parse(text));
    if (!(flags & STREAMING)) this.handlers.delete(matchtag); // this was the last response
  }
  send(topic, payload, flags, handler) {
    this.handlers.set(++this.matchtag, handler);
    const proto = [0x8e, 1, 1, TOPIC | PAYLOAD | ROUTE | flags, ...[-1, 0, -1, this.matchtag].flatMap(u32)];
    const parts = ["", topic, `${JSON.stringify(payload)}\0`].map((part) => frame(MORE, Buffer.from(part)));
    this.socket.write(Buffer.concat([...parts, frame(0, proto)]));
  }
}

// `jobs` are to be run ({id, nodes, property}) or ended ({id}); `asked` is the request without an answer.
// The rest is as the daemon has told it last. Each partition has ids of its own, without a newline.
const state = { jobs: [], asked: null, isHeld: false };
const nameOf = ({ partition = "", id }) => `${partition}\n${id}`;

// A response to the acquire: first the whole state, then changes, and the failure at its end.
function heard(error, response) {
  if (error) throw error;
  const { resources, freed = [], allocations = [] } = response;
  if (resources) takeOver(resources.execution);
  for (const rank of parseIds(response.up)) state.up.add(rank);
  for (const rank of parseIds(response.down)) state.up.delete(rank);
  mark("add", response["property-add"] ?? resources?.execution.properties);
  mark("delete", response["property-remove"]);
  for (const rank of parseIds(response.shrink)) state.targets.delete(rank);
  for (const one of freed)
    if (one.ranks) parseIds(one.ranks).forEach((rank) => state.running.get(nameOf(one))?.delete(rank));
    else state.running.delete(nameOf(one));
  for (const { R, ...one } of allocations)
    state.running.set(nameOf(one), new Set(R.execution.R_lite.flatMap(({ rank }) => parseIds(rank))));
  const changed = [...freed, ...allocations].map(nameOf);
  if (state.asked && changed.includes(nameOf(state.asked.job))) state.asked.sequence = response.sequence;
  if (response.more) return; // allocations follow
  console.log(state.isHeld ? "update" : "acquired", "up", encodeIds(state.up) || "none");
  const own = [...state.running.keys()].filter((name) => name.startsWith("\n"));
  if (!state.isHeld || changed.length) console.log("running", ...own.map((name) => name.slice(1)));
  state.isHeld = true;
  schedule();
}

// Nothing known before holds, as ranks may differ.
function takeOver({ R_lite, nodelist }) {
  const ranks = R_lite.flatMap(({ rank, children }) => parseIds(rank).map((one) => [one, children]));
  const hosts = parseHosts(nodelist.join()); // in the order of the ranks
  const target = ([rank, children], i) => [rank, { children, host: hosts[i], properties: new Set([""]) }];
  const targets = new Map(ranks.sort(([a], [b]) => a - b).map(target));
  Object.assign(state, { targets, running: new Map(), up: new Set(), isAsking: false });
}

function mark(change, properties = {}) {
  for (const [name, ranks] of Object.entries(properties))
    for (const rank of parseIds(ranks)) state.targets.get(rank).properties[change](name);
}

// One request at a time, ends before runs. A free has `repeat`, as an operator may have freed it already.
function schedule() {
  if (!state.isHeld || state.isAsking) return;
  const { asked: one, running } = state; // its answer was lost, or decided nothing: the allocations tell
  if (one) return !one.ranks === !running.has(nameOf(one.job)) ? finish(one.job, one.news) : ask(one);
  state.jobs = state.jobs.filter((job) => job.nodes || state.running.has(nameOf(job))); // others have ended
  const job = state.jobs.find(({ nodes }) => !nodes) ?? state.jobs[0];
  if (!job || job.nodes) return job && allocate(job);
  const news = `end ${job.id} ${encodeIds(state.running.get(nameOf(job)))}`;
  ask({ topic: "resource.free", payload: { id: job.id, repeat: true }, job, news });
}

// The job waits, and all behind it, while its targets are not up and free.
function allocate(job) {
  if (job.nodes > state.targets.size) return finish(job, `aside ${job.id} wants more nodes than there are`);
  if (state.running.has(nameOf(job))) return finish(job, `aside ${job.id} runs already`);
  const busy = new Set([...state.running.values()].flatMap((ranks) => [...ranks]));
  const fits = (rank) => !busy.has(rank) && state.targets.get(rank).properties.has(job.property);
  const ranks = [...state.up].filter(fits).sort((a, b) => a - b).slice(0, job.nodes);
  if (ranks.length < job.nodes) return;
  const R_lite = ranks.map((rank) => ({ rank: String(rank), children: state.targets.get(rank).children }));
  const nodelist = ranks.map((rank) => state.targets.get(rank).host);
  const R = { version: 1, execution: { R_lite, nodelist, nslots: job.nodes } };
  ask({ topic: "resource.alloc", payload: { id: job.id, R }, job, ranks, news: `run ${job.id} ${nodelist}` });
}

function finish(job, line) {
  Object.assign(state, { asked: null, jobs: state.jobs.filter((other) => other !== job) });
  console.log(line);
  setImmediate(schedule);
}

// Asks for a change after which the job has these ranks. A real scheduler starts the job where this prints.
function ask(request) {
  const { topic, payload, job, ranks, news } = request;
  Object.assign(state, { asked: request, isAsking: true });
  state.connection.send(topic, payload, 0, (error, { sequence }) => {
    state.isAsking = false;
    if (UNDECIDED.includes(error?.errnum)) return setTimeout(schedule, PAUSE);
    state.asked = null;
    job.refusals = (job.refusals ?? 0) + [EINVAL, ESTALE].includes(error?.errnum);
    if (PASSING.includes(error?.errnum) && job.refusals < MOST_REFUSALS) return setTimeout(schedule, PAUSE);
    const isLatest = !error && !(sequence < request.sequence); // nobody has changed it since
    if (isLatest && ranks) state.running.set(nameOf(job), new Set(ranks));
    if (isLatest && !ranks) state.running.delete(nameOf(job));
    finish(job, error ? `aside ${job.id} ${error.message}` : news);
  });
  payload.repeat = true; // if it is sent again, the daemon may have carried it out
}

function command(line) {
  const [verb, id, nodes, property = ""] = line.trim().split(/\s+/);
  const isRun = /^run [!-~]{1,64} [1-9]\d*$/.test(`${verb} ${id} ${nodes}`);
  if (isRun) state.jobs.push({ id, nodes: Number(nodes), property });
  if (verb === "end") state.jobs = [...state.jobs.filter((job) => job.id !== id), { id }];
  schedule();
}

async function main(uri) {
  readline.createInterface({ input: process.stdin }).on("line", command);
  for (;;) {
    state.connection = new Connection(uri);
    const acquire = state.connection.stream("resource.acquire", { extensions: ["ledger"] }, STREAMING, heard);
    const end = await acquire.catch((error) => error);
    state.connection.socket.destroy();
    if (!state.targets || !(PASSING.includes(end.errnum) || end.syscall)) throw end;
    if (state.isHeld) console.log("lost up none");
    state.isHeld = false;
    await new Promise((resolve) => setTimeout(resolve, PAUSE));
  }
}

main(process.argv[2] ?? process.env.RESOURCED_URI ?? "").catch((error) => {
  console.error(`fifo: ${error.message}`);
  process.exit(1);
});
