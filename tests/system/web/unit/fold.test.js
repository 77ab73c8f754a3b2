import assert from "node:assert/strict";
import { test } from "node:test";
import { fold, wants } from "./fold.js";
import { Model } from "./model.js";
import { ALLOCATED, COUNTED, DRAINED, EXCLUDED, ONLINE, STATES, TORPID, countOf, describe } from "./states.js";

const R = (hosts, ranks, properties = {}) => ({ version: 1, execution: { R_lite: [{ rank: ranks, children: { core: "0-3", gpu: "0" } }], nodelist: [hosts], properties, starttime: 0, expiration: 0 } });
const STATUS = { R: R("node[0-7]", "0-7", { gpu: "0-3" }), drain: { "2": { timestamp: 50, reason: "old", by: { userid: 7 } } }, online: "0-6", offline: "7", exclude: "6", torpid: "5", allocated: "1", unchecked: "" };
const answered = (before, status = STATUS) => {
  fold(before, { asked: "status" });
  return fold(before, { status }).model;
};
const loaded = (status = STATUS) => answered(new Model(), status);
const withLedger = (...allocations) => {
  const model = loaded({ ...STATUS, allocated: "" });
  fold(model, { asked: "allocations" });
  fold(model, { page: { allocations } });
  return model;
};
const apply = (model, ...events) => fold(model, { batch: { events } });
const event = (name, context, timestamp = 100) => ({ timestamp, name, context });
const names = (model) => Array.from({ length: model.size }, (_, i) => STATES[model.state(i)].name);

test("a status gives each node its state", () => {
  const model = loaded();
  assert.deepEqual(names(model), ["avail", "allocated", "drained", "avail", "avail", "torpid", "exclude", "offline"]);
  assert.deepEqual(COUNTED.map((state) => countOf(model.counts, state)), [4, 1, 0, 1, 1, 1, 1]);
  assert.deepEqual(model.propertiesOf(3), ["gpu"]);
  assert.equal(model.find("node5"), 5);
});

test("the targets in no partition are no partition, and tell which of them wait", () => {
  const part = (targets, waiting) => ({ targets, held: true, waiting, leaving: "" });
  const model = loaded({ ...STATUS, partitions: { "": part("0-3", "3"), night: part("4-7", "") } });
  assert.deepEqual(model.partitions.map(({ name }) => name), ["night"]);
  assert.equal(model.rest.waiting, "3");
  assert.equal(loaded().rest, null);
});

test("drains keep what the mode of the request keeps", () => {
  const model = loaded();
  apply(model, event("drain", { idset: "2-3", reason: "new", overwrite: 0, by: { userid: 9 } }));
  assert.deepEqual(model.drains.get(2), { timestamp: 50, reason: "old", by: { userid: 7 } });
  const bare = { until: undefined, ticket: undefined };
  assert.deepEqual(model.drains.get(3), { timestamp: 100, reason: "new", by: { userid: 9 }, ...bare });
  apply(model, event("drain", { idset: "2", reason: "newer", overwrite: 1 }, 110));
  assert.equal(model.drains.get(2).reason, "newer");
  assert.equal(model.drains.get(2).timestamp, 50);
  apply(model, event("drain", { idset: "2", reason: "newest", overwrite: 2 }, 120));
  assert.equal(model.drains.get(2).timestamp, 120);
});

test("a drain that is replaced has the ticket of the new one, and a reason takes none away", () => {
  const model = loaded();
  apply(model, event("drain", { idset: "4", ticket: "HW-1", overwrite: 0 }));
  apply(model, event("drain", { idset: "4", reason: "fan", overwrite: 0 }));
  assert.equal(model.drains.get(4).ticket, "HW-1");
  apply(model, event("drain", { idset: "4", reason: "fan", ticket: "HW-2", overwrite: 1 }));
  assert.equal(model.drains.get(4).ticket, "HW-2");
  apply(model, event("drain", { idset: "4", reason: "disk", overwrite: 1 }));
  assert.equal(model.drains.get(4).ticket, undefined);
});

test("a drain that changes nothing remains the drain of its first operator", () => {
  const model = loaded();
  apply(model, event("drain", { idset: "2", reason: "old", overwrite: 1, by: { userid: 9 } }));
  assert.deepEqual(model.drains.get(2).by, { userid: 7 });
  apply(model, event("drain", { idset: "3", reason: "health: fan", overwrite: 0, by: { host: "node3" } }));
  apply(model, event("drain", { idset: "3", reason: "health: fan", overwrite: 1, by: { userid: 9 } }));
  assert.deepEqual(model.drains.get(3).by, { userid: 9 });
  apply(model, event("drain", { idset: "2", reason: "old", overwrite: 1, until: 900, by: { userid: 9 } }));
  assert.deepEqual(model.drains.get(2).by, { userid: 9 });
});

test("events change the nodes that they name, and tell which", () => {
  const model = loaded();
  assert.deepEqual(apply(model, event("offline", { idset: "3-5" })).nodes, [3, 4, 5]);
  assert.equal(model.flags[5] & (ONLINE | TORPID), 0);
  assert.deepEqual(apply(model, event("offline", { idset: "3" })).nodes, []);
  apply(model, event("online", { idset: "3-5,7" }));
  apply(model, event("undrain", { idset: "2" }));
  assert.deepEqual(names(model), ["avail", "allocated", "avail", "avail", "avail", "avail", "exclude", "avail"]);
  assert.equal(model.counts.reduce((a, b) => a + b), 8);
});

test("an allocation holds a node until the last one is freed", () => {
  const model = withLedger();
  apply(model, event("alloc", { allocations: [{ id: "a", R: R("node[3-4]", "3-4") }, { id: "b", R: R("node4", "4") }] }));
  assert.equal(model.flags[4] & ALLOCATED, ALLOCATED);
  apply(model, event("free", { ids: ["a"], nodelist: "node[3-4]" }));
  assert.equal(wants(model), "");
  assert.equal(model.flags[3] & ALLOCATED, 0);
  assert.equal(model.flags[4] & ALLOCATED, ALLOCATED);
  apply(model, event("free", { ids: ["b"], nodelist: "node4" }));
  assert.equal(model.flags[4] & ALLOCATED, 0);
});

test("an update of an allocation changes its note at once, and what it holds by another question", () => {
  const model = withLedger({ id: "a", note: "x", R: R("node3", "3") });
  apply(model, event("alloc-update", { id: "a", partition: "", note: "y", expiration: 0, nodelist: "node3" }));
  const [allocation] = model.allocations.values();
  assert.deepEqual([allocation.note, allocation.expiration, wants(model)], ["y", undefined, ""]);
  apply(model, event("alloc-update", { id: "a", partition: "", added: R("node4", "4"), nodelist: "node[3-4]" }));
  assert.equal(model.flags[4] & ALLOCATED, ALLOCATED);
  assert.equal(wants(model), "allocations");
  fold(model, { asked: "allocations" });
  fold(model, { page: { allocations: [{ id: "a", note: "y", R: R("node[3-4]", "3-4") }] } });
  apply(model, event("free", { ids: ["a"], partition: "", nodelist: "node[3-4]" }));
  assert.equal(model.flags[4] & ALLOCATED, 0);
});

test("two partitions have allocations with the same id", () => {
  const model = withLedger();
  const of = (partition, host, ranks) => ({ id: "1", partition, R: R(host, ranks) });
  apply(model, event("alloc", { allocations: [of("", "node0", "0"), of("night", "node[3-4]", "3-4")] }));
  assert.deepEqual([0, 3].map((index) => model.flags[index] & ALLOCATED), [ALLOCATED, ALLOCATED]);
  apply(model, event("free", { ids: ["1"], partition: "", nodelist: "node0" }));
  assert.deepEqual([0, 3].map((index) => model.flags[index] & ALLOCATED), [0, ALLOCATED]);
  // Before there was a partition in it, a free meant the only allocation with its id.
  apply(model, event("free", { ids: ["1"], nodelist: "node[3-4]" }));
  assert.equal(model.allocations.size, 0);
});

test("a part of an allocation is freed", () => {
  const model = withLedger();
  apply(model, event("alloc", { allocations: [{ id: "a", R: R("node[0-3]", "0-3") }] }));
  apply(model, event("free", { ids: ["a"], idset: "1-2", nodelist: "node[1-2]" }));
  assert.deepEqual([...model.flags].slice(0, 4).map((f) => f & ALLOCATED), [ALLOCATED, 0, 0, ALLOCATED]);
});

test("before the allocations are known, they are asked for, and the status tells which nodes have any", () => {
  const model = loaded();
  assert.equal(wants(model), "allocations");
  apply(model, event("alloc", { allocations: [{ id: "a", R: R("node3", "3") }] }), event("free", { ids: ["nobody"], nodelist: "node1" }));
  assert.deepEqual([1, 3, 4].map((index) => model.flags[index] & ALLOCATED), [ALLOCATED, ALLOCATED, 0]);
  assert.equal(wants(model), "allocations");
});

test("after lost events nothing that was known of allocations is trusted", () => {
  const model = withLedger({ id: "a", R: R("node3", "3") });
  fold(model, { lost: true });
  const next = answered(model, { ...STATUS, allocated: "" });
  assert.equal(next.flags[3] & ALLOCATED, 0);
  assert.equal(wants(next), "allocations");
});

test("an answer to a question from before lost events is not taken", () => {
  const model = new Model();
  fold(model, { asked: "status" });
  fold(model, { lost: true });
  assert.equal(fold(model, { status: STATUS }).model, model);
  assert.equal(wants(model), "status");
});

test("a part of the allocations that was read before the nodes got other ranks is not trusted", () => {
  const model = loaded();
  fold(model, { asked: "allocations" });
  fold(model, { page: { allocations: [{ id: "a", R: R("node1", "1") }], next: "a" } });
  apply(model, event("restart", {}));
  const next = answered(model);
  fold(next, { page: { allocations: [{ id: "b", R: R("node2", "2") }] } });
  assert.equal(next.ledgerKnown, false);
  assert.equal(wants(next), "allocations");
});

test("of an allocation that is half freed while its page is under way, the rest is known", () => {
  const model = loaded({ ...STATUS, allocated: "3-4" });
  fold(model, { asked: "allocations" });
  apply(model, event("free", { ids: ["a"], idset: "3", nodelist: "node3" }));
  fold(model, { page: { allocations: [{ id: "a", R: R("node[3-4]", "3-4") }] } });
  assert.deepEqual([3, 4].map((index) => model.flags[index] & ALLOCATED), [0, ALLOCATED]);
});

test("events that came already are not new", () => {
  const model = new Model();
  fold(model, { batch: { events: [], last: 700 } });
  const { events } = fold(model, { batch: { events: [event("offline", { idset: "3" })], last: 690 } });
  assert.deepEqual(events, []);
  assert.equal(fold(model, { batch: { events: [event("offline", { idset: "3" })], last: 701 } }).events.length, 1);
});

test("events that are not kept any more were lost, unless they had come", () => {
  const model = withLedger();
  fold(model, { batch: { events: [], last: 700 } });
  fold(model, { batch: { events: [event("truncate", {})], last: 650 } });
  assert.equal(wants(model), "");
  fold(model, { batch: { events: [event("truncate", {})], last: 900 } });
  assert.equal(wants(model), "status");
});

test("events by new ranks mark no nodes of before", () => {
  const model = loaded();
  apply(model, event("resource-define", {}), event("offline", { idset: "3" }));
  assert.equal(model.flags[3] & ONLINE, ONLINE);
});

test("a status with other nodes is another model", () => {
  const model = loaded();
  const next = answered(model, { R: R("node[0-8]", "0-8"), online: "0-8" });
  assert.equal(model.size, 8);
  assert.equal(next.size, 9);
});

test("an update of the resources without nodes asks for the status", () => {
  const model = withLedger();
  apply(model, event("resource-update", { shrink: "3" }));
  assert.equal(wants(model), "status");
});

test("a drain that was recorded without a mode keeps the time of the one before, as Flux replays it", () => {
  const model = loaded();
  apply(model, event("drain", { idset: "2", reason: "new" }, 110));
  assert.equal(model.drains.get(2).timestamp, 50);
  assert.equal(model.drains.get(2).reason, "new");
});

test("scheduled drains come and go", () => {
  const model = loaded();
  apply(model, event("drain-schedule", { idset: "0-1", from: 500, reason: "later" }));
  apply(model, event("drain-schedule", { idset: "0-1", from: 300, reason: "soon" }));
  apply(model, event("drain-schedule", { idset: "0-1", from: 500, reason: "last" }));
  const scheduled = (index) => model.scheduled.get(index).map(({ from, reason }) => [from, reason]);
  assert.deepEqual(scheduled(1), [[300, "soon"], [500, "last"]]);
  apply(model, event("drain-cancel", { idset: "1", from: 300 }));
  assert.deepEqual(scheduled(1), [[500, "last"]]);
  apply(model, event("drain-cancel", { idset: "1" }));
  assert.equal(model.scheduled.has(1), false);
  apply(model, event("drain", { idset: "0", reason: "soon", overwrite: 0, scheduled: true }));
  assert.deepEqual(scheduled(0), [[500, "last"]]);
  assert.equal(model.flags[0] & DRAINED, DRAINED);
});

test("properties change in place", () => {
  const model = loaded();
  assert.equal(apply(model, event("property-update", { "property-add": { fast: "0-1" }, "property-remove": { gpu: "0-3" } })).layout, true);
  assert.deepEqual(model.propertiesOf(0), ["fast"]);
  assert.equal(model.properties.has("gpu"), false);
});

test("events that renumber nodes ask for the status, and unknown names do nothing", () => {
  for (const name of ["restart", "resource-define", "shrink", "unshrink"]) {
    const model = withLedger();
    apply(model, event(name, {}));
    assert.equal(wants(model), "status");
  }
  for (const name of ["constructor", "__proto__", "later"]) {
    const { model, nodes, layout } = apply(withLedger(), event(name, {}));
    assert.deepEqual([wants(model), nodes, layout], ["", [], false]);
  }
});

test("ranks with gaps are addressed", () => {
  const model = loaded({ R: R("node[1,4-5]", "1,4-5"), drain: {}, online: "1,4-5", offline: "", exclude: "", torpid: "", allocated: "" });
  assert.deepEqual(apply(model, event("drain", { idset: "0-4", overwrite: 0 })).nodes, [0, 1]);
  assert.equal(model.indexOf(5), 2);
  assert.equal(model.indexOf(3), undefined);
});

test("all that is true of a node is described", () => {
  assert.equal(describe(DRAINED), "drained, offline");
  assert.equal(describe(DRAINED | ONLINE | ALLOCATED), "draining");
  assert.equal(describe(DRAINED | ALLOCATED), "draining, offline");
  assert.equal(describe(ALLOCATED), "offline, allocated");
  assert.equal(describe(ONLINE | ALLOCATED), "avail, allocated");
  assert.equal(describe(EXCLUDED | ALLOCATED), "exclude, offline, allocated");
});

test("nodes that are drained and offline are counted as drained, and look otherwise", () => {
  const model = loaded({ ...STATUS, drain: { "2,7": { timestamp: 50, reason: "old" } } });
  assert.deepEqual(names(model).slice(2, 3), ["drained"]);
  assert.deepEqual(names(model).slice(7), ["drained-offline"]);
  assert.equal(countOf(model.counts, STATES.findIndex(({ name }) => name === "drained")), 2);
});

test("the cores and gpus in use are those of the allocations that are there", () => {
  const model = withLedger({ id: "a", R: R("node[0-3]", "0-3") });
  assert.deepEqual(model.total, { cores: 32, gpus: 8 });
  assert.deepEqual(model.used, { cores: 16, gpus: 4 });
  apply(model, event("free", { ids: ["a"], idset: "1-2", nodelist: "node[1-2]" }));
  assert.deepEqual(model.used, { cores: 8, gpus: 2 });
  apply(model, event("free", { ids: ["a"], nodelist: "node[0,3]" }));
  assert.deepEqual(model.used, { cores: 0, gpus: 0 });
});
