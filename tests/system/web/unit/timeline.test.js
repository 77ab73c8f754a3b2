import assert from "node:assert/strict";
import { test } from "node:test";
import { ALLOCATED, DRAINED, ONLINE, STATES } from "./states.js";
import { UNKNOWN, pieces, totals } from "./timeline.js";

const event = (timestamp, name, context = {}) => ({ timestamp, name, context: { idset: "3", ...context } });
const strip = (events, present) =>
  pieces(events, { rank: 3, present, from: 0, to: 100 }).map(({ from, to, state }) => [from, to, STATES[state]?.name ?? "unknown"]);
const allocation = { allocations: [{ id: "a", R: { execution: { R_lite: [{ rank: "0-9", children: {} }], nodelist: ["n[0-9]"] } } }] };

test("each event begins a piece", () => {
  assert.deepEqual(strip([event(10, "drain", { overwrite: 0 }), event(30, "offline"), event(40, "online"), event(60, "undrain")], ONLINE), [
    [0, 10, "avail"], [10, 30, "drained"], [30, 40, "drained-offline"], [40, 60, "drained"], [60, 100, "avail"],
  ]);
  assert.deepEqual(strip([event(20, "alloc", allocation), event(50, "drain", { overwrite: 0 }), event(70, "free", { ids: ["a"], idset: undefined })], ONLINE | DRAINED), [
    [0, 20, "avail"], [20, 50, "allocated"], [50, 70, "draining"], [70, 100, "drained"],
  ]);
});

test("the state before the first event is the one that it ended", () => {
  assert.deepEqual(strip([event(40, "undrain")], ONLINE), [[0, 40, "drained"], [40, 100, "avail"]]);
  assert.deepEqual(strip([event(40, "online")], ONLINE), [[0, 40, "offline"], [40, 100, "avail"]]);
  assert.deepEqual(strip([event(40, "free", { ids: ["b"], idset: undefined })], ONLINE), [[0, 40, "allocated"], [40, 100, "avail"]]);
  assert.deepEqual(strip([], ONLINE | ALLOCATED), [[0, 100, "allocated"]]);
});

test("the time before the first start is not on record", () => {
  const parts = pieces([{ timestamp: 25, name: "restart", context: { ranks: "0-9", online: "0-9" } }], { rank: 3, present: ONLINE, from: 0, to: 100 });
  assert.deepEqual(parts, [{ from: 0, to: 25, state: UNKNOWN }, { from: 25, to: 100, state: 0 }]);
  assert.deepEqual([...totals(parts)], [[UNKNOWN, 25], [0, 75]]);
});

test("events before the shown time count, but begin no piece", () => {
  const parts = pieces([event(-20, "drain", { overwrite: 0 }), event(-10, "undrain"), event(50, "offline")], { rank: 3, present: 0, from: 0, to: 100 });
  assert.deepEqual(parts.map(({ from, to, state }) => [from, to, STATES[state].name]), [[0, 50, "avail"], [50, 100, "offline"]]);
});
