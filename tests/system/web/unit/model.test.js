import assert from "node:assert/strict";
import { test } from "node:test";
import { Model } from "./model.js";
import { ALLOCATED, DRAINED, ONLINE, STATES, TORPID, describe } from "./states.js";

const R = (hosts, ranks, properties = {}) => ({ version: 1, execution: { R_lite: [{ rank: ranks, children: { core: "0-3", gpu: "0" } }], nodelist: [hosts], properties, starttime: 0, expiration: 0 } });
const STATUS = { R: R("node[0-7]", "0-7", { gpu: "0-3" }), drain: { "2": { timestamp: 50, reason: "old", by: { userid: 7 } } }, online: "0-6", offline: "7", exclude: "6", torpid: "5", allocated: "1", unchecked: "" };
const loaded = (status = STATUS) => {
  const model = new Model();
  model.load(status);
  return model;
};
const event = (name, context, timestamp = 100) => ({ timestamp, name, context });
const names = (model) => Array.from({ length: model.size }, (_, i) => STATES[model.state(i)].name);

test("a status gives each node its state", () => {
  const model = loaded();
  assert.deepEqual(names(model), ["free", "allocated", "drained", "free", "free", "torpid", "excluded", "offline"]);
  assert.deepEqual([...model.counts], [3, 1, 0, 1, 1, 1, 1]);
  assert.deepEqual(model.propertiesOf(3), ["gpu"]);
  assert.equal(model.find("node5"), 5);
});

test("drains keep what the mode of the request keeps", () => {
  const model = loaded();
  model.apply(event("drain", { idset: "2-3", reason: "new", overwrite: 0, by: { userid: 9 } }));
  assert.deepEqual(model.drains.get(2), { timestamp: 50, reason: "old", by: { userid: 7 } });
  assert.deepEqual(model.drains.get(3), { timestamp: 100, reason: "new", by: { userid: 9 }, until: undefined });
  model.apply(event("drain", { idset: "2", reason: "newer", overwrite: 1 }, 110));
  assert.equal(model.drains.get(2).reason, "newer");
  assert.equal(model.drains.get(2).timestamp, 50);
  model.apply(event("drain", { idset: "2", reason: "newest", overwrite: 2 }, 120));
  assert.equal(model.drains.get(2).timestamp, 120);
});

test("events change the nodes that they name, and tell which", () => {
  const model = loaded();
  assert.deepEqual(model.apply(event("offline", { idset: "3-5" })).nodes, [3, 4, 5]);
  assert.equal(model.flags[5] & (ONLINE | TORPID), 0);
  assert.deepEqual(model.apply(event("offline", { idset: "3" })).nodes, []);
  model.apply(event("online", { idset: "3-5,7" }));
  model.apply(event("undrain", { idset: "2" }));
  assert.deepEqual(names(model), ["free", "allocated", "free", "free", "free", "free", "excluded", "free"]);
  assert.equal(model.counts.reduce((a, b) => a + b), 8);
});

test("an allocation holds a node until the last one is freed", () => {
  const model = loaded({ ...STATUS, allocated: "" });
  model.ledgerKnown = true;
  model.apply(event("alloc", { allocations: [{ id: "a", R: R("node[3-4]", "3-4") }, { id: "b", R: R("node4", "4") }] }));
  assert.equal(model.flags[4] & ALLOCATED, ALLOCATED);
  assert.equal(model.apply(event("free", { ids: ["a"], nodelist: "node[3-4]" })).stale, false);
  assert.equal(model.flags[3] & ALLOCATED, 0);
  assert.equal(model.flags[4] & ALLOCATED, ALLOCATED);
  model.apply(event("free", { ids: ["b"], nodelist: "node4" }));
  assert.equal(model.flags[4] & ALLOCATED, 0);
});

test("a part of an allocation is freed", () => {
  const model = loaded({ ...STATUS, allocated: "" });
  model.ledgerKnown = true;
  model.apply(event("alloc", { allocations: [{ id: "a", R: R("node[0-3]", "0-3") }] }));
  model.apply(event("free", { ids: ["a"], idset: "1-2", nodelist: "node[1-2]" }));
  assert.deepEqual([...model.flags].slice(0, 4).map((f) => f & ALLOCATED), [ALLOCATED, 0, 0, ALLOCATED]);
});

test("the end of an allocation that is not known asks for the status", () => {
  assert.equal(loaded().apply(event("free", { ids: ["nobody"], nodelist: "node1" })).stale, true);
});

test("scheduled drains come and go", () => {
  const model = loaded();
  model.apply(event("drain-schedule", { idset: "0-1", from: 500, reason: "later" }));
  assert.equal(model.scheduled.get(1).from, 500);
  model.apply(event("drain-cancel", { idset: "1" }));
  assert.equal(model.scheduled.has(1), false);
  model.apply(event("drain", { idset: "0", reason: "later", overwrite: 0, scheduled: true }));
  assert.equal(model.scheduled.has(0), false);
  assert.equal(model.flags[0] & DRAINED, DRAINED);
});

test("properties change in place", () => {
  const model = loaded();
  assert.equal(model.apply(event("property-update", { "property-add": { fast: "0-1" }, "property-remove": { gpu: "0-3" } })).layout, true);
  assert.deepEqual(model.propertiesOf(0), ["fast"]);
  assert.equal(model.properties.has("gpu"), false);
});

test("events that renumber nodes ask for the status, and unknown names do nothing", () => {
  for (const name of ["restart", "resource-define", "shrink", "unshrink"]) assert.equal(loaded().apply(event(name, {})).stale, true);
  for (const name of ["constructor", "__proto__", "later"]) assert.deepEqual(loaded().apply(event(name, {})), { nodes: [], layout: false, stale: false });
});

test("ranks with gaps are addressed", () => {
  const model = loaded({ R: R("node[1,4-5]", "1,4-5"), drain: {}, online: "1,4-5", offline: "", exclude: "", torpid: "", allocated: "" });
  assert.deepEqual(model.apply(event("drain", { idset: "0-4", overwrite: 0 })).nodes, [0, 1]);
  assert.equal(model.indexOf(5), 2);
  assert.equal(model.indexOf(3), undefined);
});

test("all that is true of a node is described", () => {
  assert.equal(describe(DRAINED), "drained, offline");
  assert.equal(describe(DRAINED | ONLINE | ALLOCATED), "draining");
  assert.equal(describe(ALLOCATED), "offline, allocated");
});
