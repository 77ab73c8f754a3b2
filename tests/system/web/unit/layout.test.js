import assert from "node:assert/strict";
import { test } from "node:test";
import { modelOf } from "./fold.js";
import * as layout from "./layout.js";

const AREA = { width: 1400, height: 800, heading: 22, gap: 14, minimum: 120, smallest: 2, largest: 48 };

const model = (hosts, properties = {}, partitions = {}) => {
  const count = Number(hosts.match(/-(\d+)\]$/)[1]);
  const R = { execution: { R_lite: [{ rank: `0-${count}`, children: { core: "0" } }], nodelist: [hosts], properties } };
  return modelOf({ R, online: `0-${count}`, partitions });
};

test("the cells of every size of cluster fit, and none is lost", () => {
  for (const sizes of [[8], [1000], [16384], [131072], [12288, 3840, 256], new Array(64).fill(256), [1, 2, 3]]) {
    const fitted = layout.fit(sizes, AREA);
    const { blocks, width, height } = layout.place(fitted, sizes, fitted.pitch, AREA);
    assert.ok(width <= AREA.width, `${sizes.length} groups are ${width} wide`);
    if (fitted.pitch > AREA.smallest) assert.ok(height <= AREA.height);
    assert.equal(blocks.reduce((sum, block) => sum + block.size, 0), sizes.reduce((a, b) => a + b));
  }
});

test("131,072 nodes fit on a wall screen", () => {
  assert.ok(layout.fit([131072], AREA).height <= AREA.height);
});

test("each cell is found where it was placed", () => {
  for (const sizes of [[300], [40, 7, 90], new Array(30).fill(17)]) {
    const fitted = layout.fit(sizes, AREA);
    const { blocks } = layout.place(fitted, sizes, fitted.pitch, AREA);
    for (const block of blocks) {
      for (let position = 0; position < block.size; ++position) {
        const { x, y } = layout.cell(block, position, fitted.pitch);
        const found = layout.hit(blocks, fitted.pitch, x + fitted.pitch / 2, y + fitted.pitch / 2);
        assert.deepEqual([found.block.group, found.position], [block.group, position]);
      }
    }
    assert.equal(layout.hit(blocks, fitted.pitch, -5, 3), null);
    assert.equal(layout.hit(blocks, fitted.pitch, 5, 100000), null);
  }
});

test("groups have each node once, by partition, property and name", () => {
  const m = model("node[0-9]", { gpu: "0-3", big: "3-4" }, { batch: { targets: "0-7" } });
  const named = (grouping) => Object.fromEntries(layout.groups(m, grouping).map((g) => [g.name, [...g.nodes]]));
  assert.deepEqual(named("partition"), { batch: [0, 1, 2, 3, 4, 5, 6, 7], "no partition": [8, 9] });
  assert.deepEqual(named("property"), { gpu: [0, 1, 2], "big, gpu": [3], big: [4], "no property": [5, 6, 7, 8, 9] });
  assert.deepEqual(named("name"), { node: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9] });
  assert.equal(layout.bestGrouping(m), "partition");
});

test("a name that is a key of objects is a group like others", () => {
  const m = model("node[0-3]", { __proto__x: "0", constructor: "1" });
  assert.deepEqual(layout.groups(m, "property").map((g) => g.name).sort(), ["__proto__x", "constructor", "no property"]);
});
