import assert from "node:assert/strict";
import { test } from "node:test";
import * as idset from "./idset.js";
import { random, resourcectl } from "./judge.js";

const canonical = (text) => {
  try {
    return idset.encode(idset.parse(text));
  } catch {
    return null;
  }
};

test("texts of RFC 22 are read as resourcectl reads them", () => {
  for (const text of ["2", "7-9", "1,7-9,16", "2,3,4,5", "[7-9]", "[]", "", "1048576", "0-4294967294", "4.2", "x", "1-2x", "01,2", "00", "3,2",
    "3-0", "[0", "0]", "[[0]]", "0,[2", "0-", "2,2", "1-3,3", "4294967295", "1,", ",1", "1--2", " 1", "1-2-3", "["]) {
    assert.equal(canonical(text), resourcectl("idset", text), JSON.stringify(text));
  }
});

test("an operation on sets is the operation on their members", () => {
  const next = random(7);
  const sample = () => idset.fromSorted([...new Set(Array.from({ length: next() % 40 }, () => next() % 60))].sort((a, b) => a - b));
  const members = (set) => {
    const found = [];
    idset.forEach(set, (id) => found.push(id));
    return found;
  };
  for (let round = 0; round < 2000; ++round) {
    const [a, b] = [sample(), sample()];
    const [x, y] = [members(a), members(b)];
    assert.deepEqual(members(idset.union(a, b)), [...new Set([...x, ...y])].sort((p, q) => p - q));
    assert.deepEqual(members(idset.difference(a, b)), x.filter((id) => !y.includes(id)));
    assert.deepEqual(idset.unionAll([a, b, a]), idset.union(a, b));
    assert.equal(idset.count(a), x.length);
    for (let id = 0; id < 62; ++id) assert.equal(idset.has(a, id), x.includes(id));
    assert.deepEqual(idset.parse(idset.encode(a)), a);
  }
});

test("a set of all ids costs no more than its text", () => {
  const all = idset.parse("0-4294967294");
  assert.equal(idset.count(all), 4294967295);
  assert.ok(idset.has(all, 4294967294));
  assert.equal(idset.encode(idset.difference(all, idset.parse("5"))), "0-4,6-4294967294");
});
