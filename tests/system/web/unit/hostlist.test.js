import assert from "node:assert/strict";
import { test } from "node:test";
import * as hostlist from "./hostlist.js";
import { random, resourcectl } from "./judge.js";

const expanded = (text) => {
  try {
    return hostlist.parse(text).join(" ");
  } catch {
    return null;
  }
};

test("texts of RFC 29 are read as resourcectl reads them", () => {
  for (const text of ["foox,fooy,fooz", "[1-3,5-6]", "foo[1-5]", "foo[0-4]-eth2", "foo1,foo1,foo1", "[00-02]", "[00-2]", "foo[1,1,2,1]",
    "n[005,4,11-13]", "foo[3-1]", "foo[p]", "foo[1-", "foo[]", "foo]", "a,,b", ",", "a,", "a[1-2]b[3]", "a[[1]]", "rack[1-2]-n[3]",
    "a[1-2],b,c[08-11]-ib", "é"]) {
    const judged = resourcectl("hostlist", "--expand", text);
    assert.equal(expanded(text), judged, JSON.stringify(text));
  }
  // resourcectl takes these for two lists.
  assert.equal(expanded("a b"), null);
});

test("an expression stands for a million hosts at most", () => {
  for (const text of ["x[0-1048575]y", "x[0-1048576]y"]) {
    const judged = resourcectl("hostlist", "--count", text);
    assert.equal(expanded(text) === null ? null : String(hostlist.parse(text).length), judged, text);
  }
});

test("names are compressed as resourcectl compresses them", () => {
  const next = random(11);
  const shapes = [(n) => `node${n}`, (n) => `n${String(n).padStart(2, "0")}`, (n) => `rack${n % 3}-node${n}`, (n) => `n${n}-ib`, (n) => `${n}`, () => "login", (n) => `r${n}c${n % 4}`];
  for (let round = 0; round < 150; ++round) {
    const shape = shapes[next() % shapes.length];
    const other = shapes[next() % shapes.length];
    let at = next() % 12;
    const names = Array.from({ length: 1 + (next() % 8) }, () => {
      at = next() % 4 === 0 ? next() % 12 : at + 1;
      return (next() % 8 === 0 ? other : shape)(at);
    });
    const text = hostlist.encode(names);
    assert.equal(text, resourcectl("hostlist", ...names), names.join(" "));
    assert.deepEqual(hostlist.parse(text), names);
  }
});

test("the natural order counts numbers by value", () => {
  const names = ["n10", "n9", "n1", "a2", "rack2-n1", "rack10-n1", "rack2-n10"];
  const ordered = (list) => [...hostlist.naturalOrder(list)].map((i) => list[i]);
  assert.deepEqual(ordered(names), ["a2", "n1", "n9", "n10", "rack2-n1", "rack2-n10", "rack10-n1"]);
});

test("a list that is in order by its runs is not sorted", () => {
  const runs = hostlist.parseRuns("node[0-9],node[10-2000]");
  const names = hostlist.expand(runs);
  assert.deepEqual([...hostlist.naturalOrder(names, runs)], names.map((_, i) => i));
  const backwards = hostlist.parseRuns("node[5-9],node[0-4]");
  assert.deepEqual([...hostlist.naturalOrder(hostlist.expand(backwards), backwards)], [5, 6, 7, 8, 9, 0, 1, 2, 3, 4]);
});
