import assert from "node:assert/strict";
import { test } from "node:test";
import { fold, modelOf } from "./fold.js";
import * as search from "./search.js";

const model = modelOf({
  R: { execution: { R_lite: [{ rank: "0-19", children: { core: "0" } }], nodelist: ["node[0-19]"], properties: { gpu: "0-4" } } },
  online: "0-17", allocated: "8-9", exclude: "", torpid: "6",
  drain: { "3,12,19": { timestamp: 1, reason: "Bad disk" } },
  partitions: { batch: { targets: "0-9" } },
});

fold(model, { asked: "allocations" });
fold(model, { page: { allocations: [{ id: "ƒ2Dv7", R: { execution: { R_lite: [{ rank: "8-9", children: { core: "0" } }], nodelist: ["node[8-9]"] } } }] } });

const found = (query) => {
  const result = search.match(model, query);
  return result && [...result.mask].flatMap((bit, index) => (bit ? [index] : []));
};

test("words find hosts, ranks, states, properties, partitions and reasons", () => {
  assert.equal(found("  "), null);
  assert.deepEqual(found("node1"), [1, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19]);
  assert.deepEqual(found("node[3-5,19]"), [3, 4, 5, 19]);
  assert.deepEqual(found("17-18"), [17, 18]);
  assert.deepEqual(found("drained"), [3, 12, 19]);
  assert.deepEqual(found("state:torpid"), [6]);
  assert.deepEqual(found("offline"), [18, 19]);
  assert.deepEqual(found("down"), [3, 6, 12, 18, 19]);
  assert.deepEqual(found("prop:gpu"), [0, 1, 2, 3, 4]);
  assert.deepEqual(found("part:batch drained"), [3]);
  assert.deepEqual(found('reason:"bad DISK"'), [3, 12, 19]);
  assert.deepEqual(found("disk"), [3, 12, 19]);
});

test("case means nothing", () => {
  for (const [written, usual] of [["Drained", "drained"], ["NODE1", "node1"], ["Node[3-5]", "node[3-5]"], ["PROP:GPU", "prop:gpu"], ["Part:Batch", "part:batch"], ["State:Torpid", "state:torpid"], ['REASON:"bad disk"', 'reason:"bad disk"']])
    assert.deepEqual(found(written), found(usual));
});

test("offline finds drained nodes too, and state:offline those that are counted as offline", () => {
  assert.deepEqual(found("offline"), [18, 19]);
  assert.deepEqual(found("state:offline"), [18]);
});

test("avail nodes are free or allocated", () => {
  assert.deepEqual(found("avail").length, 16 - 1);
  assert.deepEqual(found("allocated"), [8, 9]);
  assert.deepEqual(found("avail free").length, 16 - 1 - 2);
});

test("jobs are found by their id, or by a part of it", () => {
  assert.deepEqual(found("ƒ2Dv7"), [8, 9]);
  assert.deepEqual(found("job:2Dv"), [8, 9]);
  assert.deepEqual(found("2Dv"), []);
});

test("a search that cannot mean anything says why", () => {
  const problem = (query) => search.match(model, query).problem;
  assert.equal(problem("state:nothing"), 'there is no state "nothing"');
  assert.equal(problem("prop:__proto__"), 'there is no property "__proto__"');
  assert.equal(problem("part:night"), 'there is no partition "night"');
  assert.match(problem("node[3-"), /a "]" is missing/);
  assert.match(problem("host:node[3-"), /a "]" is missing/);
  assert.match(problem("9-3"), /not in ascending order/);
  assert.equal(problem("nothing"), undefined);
  assert.equal(problem("node[3-5]"), undefined);
});

test("the first match is the exact name, else the first in order", () => {
  assert.equal(search.first(model, "node1"), 1);
  assert.equal(search.first(model, "drained"), 3);
  assert.equal(search.first(model, "nothing"), undefined);
});
