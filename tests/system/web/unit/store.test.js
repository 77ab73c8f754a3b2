import assert from "node:assert/strict";
import { test } from "node:test";

// The parts of a browser that the store uses. Requests are answered by the test.
const requests = [];
let ready = () => new Response("{}");
globalThis.window = { addEventListener: () => {} };
globalThis.document = { addEventListener: () => {}, hidden: false };
globalThis.sessionStorage = { getItem: () => null };
globalThis.fetch = (url, { signal } = {}) =>
  url.startsWith("api/resource.ready") ? Promise.resolve(ready()) : new Promise((answer, refuse) => {
    signal?.addEventListener("abort", () => refuse(new DOMException("aborted", "AbortError")));
    requests.push({ url, answer, signal });
  });
// Timers of the store must not delay the end of the test.
for (const name of ["setTimeout", "setInterval"]) {
  const start = globalThis[name];
  globalThis[name] = (f, ms, ...more) => {
    const timer = start(f, ms, ...more);
    if (ms > 1000) timer.unref();
    return timer;
  };
}
const history = await import("./history.js");
const { Store } = await import("./store.js");
const { ALLOCATED, DRAINED } = await import("./states.js");

const request = async (topic) => {
  for (;;) {
    const at = requests.findIndex(({ url }) => url.startsWith(`api/${topic}`));
    if (at >= 0) return requests.splice(at, 1)[0];
    await new Promise((next) => setImmediate(next));
  }
};
const json = (value) => new Response(JSON.stringify(value));

class Stream {
  constructor({ answer, signal }) {
    answer(new Response(new ReadableStream({ start: (controller) => (this.controller = controller) })));
    signal.addEventListener("abort", () => this.controller.error(new DOMException("aborted", "AbortError")));
  }

  async send(events, last) {
    this.controller.enqueue(new TextEncoder().encode(`id: ${last}\ndata: ${JSON.stringify({ events, last })}\n\n`));
    await new Promise((next) => setTimeout(next, 5));
  }
}

const R = { execution: { R_lite: [{ rank: "0-7", children: { core: "0" } }], nodelist: ["node[0-7]"] } };
const status = (more = {}) => json({ R, online: "0-7", drain: {}, ...more });
const drain = (idset) => ({ timestamp: 5, name: "drain", context: { idset, reason: "disk", overwrite: 0 } });
const part = (id, ranks) => ({ id, R: { execution: { R_lite: [{ rank: ranks, children: { core: "0" } }], nodelist: [] } } });

const started = async (answers = {}) => {
  requests.length = 0;
  const calls = [];
  const note = (name) => (value) => calls.push([name, value]);
  const store = new Store(Object.fromEntries(["loaded", "changed", "layout", "events", "restarted", "live", "failed"].map((name) => [name, note(name)])));
  store.restart();
  const probe = new Stream(await request("resource.journal?allocations=true&since=4102444800"));
  await probe.send([], 700);
  (await request("resource.status")).answer(status(answers.status));
  const stream = new Stream(await request("resource.journal?after=200&"));
  await stream.send([drain("7")], 700);
  await stream.send([], 700);
  if (!answers.keepsLedger) (await request("resource.allocations")).answer(json({ allocations: [] }));
  return { store, stream, calls };
};

test("events that the status has are shown and not folded", async () => {
  const { store, stream } = await started();
  assert.equal(store.model.flags[7] & DRAINED, 0);
  assert.equal(store.recent.length, 1);
  assert.equal(store.live.state.live, true);
  await stream.send([drain("3")], 701);
  assert.equal(store.model.flags[3] & DRAINED, DRAINED);
  store.live.stop("end");
});

test("an event that overtakes a status is not lost", async () => {
  const { store, stream } = await started();
  store.askedAt_.status = -Infinity;
  await stream.send([{ timestamp: 6, name: "restart", context: {} }], 701);
  const slow = await request("resource.status");
  await stream.send([drain("4")], 702);
  slow.answer(status());
  await new Promise((next) => setTimeout(next, 5));
  assert.equal(store.model.flags[4] & DRAINED, DRAINED);
  store.live.stop("end");
});

test("what is freed while the ledger is read stays free", async () => {
  const { store, stream } = await started({ status: { allocated: "0-2" }, keepsLedger: true });
  const page = await request("resource.allocations");
  await stream.send([{ timestamp: 6, name: "free", context: { ids: ["a"], nodelist: "node0" } }], 701);
  page.answer(json({ allocations: [part("a", "0"), part("b", "1-2")] }));
  await new Promise((next) => setTimeout(next, 5));
  assert.equal(store.model.ledgerKnown, true);
  assert.deepEqual([...store.model.allocations.values()].map(({ id }) => id), ["b"]);
  await stream.send([{ timestamp: 7, name: "free", context: { ids: ["b"], nodelist: "node[1-2]" } }], 702);
  assert.equal(store.model.flags[1] & ALLOCATED, 0);
  store.live.stop("end");
});

test("a status that cannot be loaded is asked for again after a pause, and the page says that it has an older one", async () => {
  const { store, stream } = await started();
  store.askedAt_.status = -Infinity;
  await stream.send([{ timestamp: 6, name: "restart", context: {} }], 701);
  (await request("resource.status")).answer(new Response(JSON.stringify({ errno: 5, text: "the disk is full" }), { status: 500 }));
  await new Promise((next) => setTimeout(next, 300));
  assert.equal(requests.filter(({ url }) => url.startsWith("api/resource.status")).length, 0);
  assert.equal(store.failure, "the disk is full");
  store.askedAt_.status = -Infinity;
  (await request("resource.status")).answer(status());
  await new Promise((next) => setTimeout(next, 5));
  assert.equal(store.failure, "");
  store.live.stop("end");
});

test("where no ledger is kept, it is asked for once", async () => {
  const { store } = await started({ keepsLedger: true });
  const missing = { status: 404, headers: { "Content-Type": "application/json" } };
  (await request("resource.allocations")).answer(new Response(JSON.stringify({ errno: 38, text: "unknown topic" }), missing));
  await new Promise((next) => setTimeout(next, 20));
  assert.equal(store.model.ledgerKnown, true);
  assert.deepEqual(requests.filter(({ url }) => url.startsWith("api/resource.allocations")), []);
});

test("one status is asked for at a time", async () => {
  const { store, stream } = await started();
  store.askedAt_.status = -Infinity;
  await stream.send([{ timestamp: 6, name: "restart", context: {} }], 701);
  const slow = await request("resource.status");
  store.restart();
  assert.equal(slow.signal.aborted, true);
  const probe = new Stream(await request("resource.journal?allocations=true&since=4102444800"));
  await probe.send([], 702);
  await request("resource.status");
  assert.equal(requests.filter(({ url }) => url.startsWith("api/resource.status")).length, 0);
  store.live.stop("end");
});

test("a view that fails keeps the others from nothing, and loses no event", async () => {
  const { store, stream } = await started();
  const failed = new Promise((done) => (globalThis.reportError = done));
  store.handlers.events = () => {
    throw new Error("a view");
  };
  await stream.send([drain("3")], 701);
  assert.equal((await failed).message, "a view");
  assert.equal(store.model.flags[3] & DRAINED, DRAINED);
  assert.equal(store.live.state.live, true);
  store.live.stop("end");
});

test("events of the start are not new to views that read a history of their own", async () => {
  const { store, stream, calls } = await started();
  assert.deepEqual(calls.filter(([name]) => name === "events").flatMap(([, events]) => events), []);
  await stream.send([drain("3")], 701);
  assert.equal(calls.filter(([name]) => name === "events").at(-1)[1].length, 1);
  store.live.stop("end");
});

test("an event that comes with a history and by the stream is there once", () => {
  const at = (timestamp, idset) => ({ ...drain(idset), timestamp });
  const past = [at(1, "0"), at(2, "1"), at(2, "2"), at(3, "3")];
  history.join(past, [at(2, "1"), at(2, "2"), at(3, "3"), at(3, "4"), at(4, "5")]);
  assert.deepEqual(past.map(({ context }) => context.idset), ["0", "1", "2", "3", "4", "5"]);
});

test("events that are not kept any more lead to a new status", async () => {
  const { store, stream } = await started();
  store.askedAt_.status = -Infinity;
  await stream.send([{ timestamp: 6, name: "truncate", context: {} }], 900);
  (await request("resource.status")).answer(status({ drain: { 5: { timestamp: 1, reason: "x" } } }));
  await new Promise((next) => setTimeout(next, 5));
  assert.equal(store.model.flags[5] & DRAINED, DRAINED);
  store.live.stop("end");
});

test("a standby that has lost etcd is not live", async () => {
  const refusal = (text) => () => new Response(JSON.stringify({ errno: 11, text }), { status: 503 });
  ready = refusal("waiting for node agents to report the inventory");
  const { store } = await started();
  assert.equal(store.live.state.live, true);
  ready = refusal("standby, etcd does not answer (timeout)");
  store.live.connect_();
  while (store.live.state.live) await new Promise((next) => setImmediate(next));
  assert.equal(store.live.state.text, "standby, etcd does not answer (timeout)");
  store.live.stop("end");
  ready = () => new Response("{}");
});

test("a page whose last event no daemon has loads the state anew", async () => {
  const { store } = await started();
  store.live.failures = 5;
  store.live.connect_();
  const refusal = JSON.stringify({ errno: 113, text: "it does not have event 700 yet" });
  (await request("resource.journal?after=700")).answer(new Response(refusal, { status: 503 }));
  await request("resource.journal?allocations=true&since=4102444800");
  store.live.stop("end");
});
