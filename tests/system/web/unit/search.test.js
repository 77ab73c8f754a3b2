import assert from "node:assert/strict";
import { test } from "node:test";
import { modelOf } from "./fold.js";
import * as search from "./search.js";

const model = modelOf({
  R: { execution: { R_lite: [{ rank: "0-19", children: { core: "0" } }], nodelist: ["node[0-19]"], properties: { gpu: "0-4" } } },
  online: "0-17", allocated: "5", exclude: "", torpid: "6",
  drain: { "3,12": { timestamp: 1, reason: "Bad disk" } },
  partitions: { batch: { targets: "0-9" } },
});

const found = (query) => {
  const result = search.match(model, query);
  return result && [...result.mask].flatMap((bit, index) => (bit ? [index] : []));
};

test("words find hosts, ranks, states, properties, partitions and reasons", () => {
  assert.equal(found("  "), null);
  assert.deepEqual(found("node1"), [1, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19]);
  assert.deepEqual(found("node[3-5,19]"), [3, 4, 5, 19]);
  assert.deepEqual(found("17-18"), [17, 18]);
  assert.deepEqual(found("drained"), [3, 12]);
  assert.deepEqual(found("state:torpid"), [6]);
  assert.deepEqual(found("offline"), [18, 19]);
  assert.deepEqual(found("down"), [3, 6, 12, 18, 19]);
  assert.deepEqual(found("prop:gpu"), [0, 1, 2, 3, 4]);
  assert.deepEqual(found("part:batch drained"), [3]);
  assert.deepEqual(found('reason:"bad DISK"'), [3, 12]);
  assert.deepEqual(found("disk"), [3, 12]);
  assert.deepEqual(found("state:nothing"), []);
  assert.deepEqual(found("node[3-"), []);
  assert.deepEqual(found("prop:__proto__"), []);
});

test("the first match is the exact name, else the first in order", () => {
  assert.equal(search.first(model, "node1"), 1);
  assert.equal(search.first(model, "drained"), 3);
  assert.equal(search.first(model, "nothing"), undefined);
});
