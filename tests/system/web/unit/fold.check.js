// Reads {before, events, after} and compares: the status of before with all events folded is the status of after.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { Model } from "./model.js";

const { before, events, after } = JSON.parse(readFileSync(process.argv[2], "utf8"));
const folded = new Model();
folded.load(before);
folded.ledgerKnown = true; // There are no allocations before.
for (const event of events) {
  const change = folded.apply(event);
  assert.equal(change.stale, false, `${event.name} cannot be folded`);
}
const loaded = new Model();
loaded.load(after);

assert.deepEqual([...folded.flags], [...loaded.flags]);
assert.deepEqual([...folded.counts], [...loaded.counts]);
assert.deepEqual(new Map([...folded.properties].sort()), new Map([...loaded.properties].sort()));
assert.equal(folded.expiration, loaded.expiration);
// A status gives drains of one second with the same reason in one entry.
const rounded = (drain) => JSON.stringify([drain.reason || "", drain.until ?? null, drain.by ?? null, drain.from ?? null]);
for (const kind of ["drains", "scheduled"]) {
  assert.deepEqual([...folded[kind].keys()].sort(), [...loaded[kind].keys()].sort());
  for (const [index, drain] of loaded[kind]) {
    const own = folded[kind].get(index);
    assert.equal(rounded(own), rounded(drain), `${kind} of ${index}`);
    if (kind === "drains") assert.ok(Math.abs(own.timestamp - drain.timestamp) <= 1, `${own.timestamp} and ${drain.timestamp}`);
  }
}
const seen = new Set(events.map((event) => event.name));
console.log(`${events.length} events folded: ${[...seen].sort().join(" ")}`);
