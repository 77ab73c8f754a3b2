// Plays random histories with the answers that a daemon gave after each of its changes. A page asks for what its model
// wants; answers are late, the connection of the events lags behind, events are lost, questions fail, and a standby
// answers with an old state. Whenever the page has all events and wants nothing, its model must be that of the daemon.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { fold, wants } from "./fold.js";
import { Model } from "./model.js";

const steps = JSON.parse(readFileSync(process.argv[2], "utf8"));
const HISTORIES = 150;
const numberOf = (step) => steps[step].batches.at(-1).last;

// A random number generator with a seed (mulberry32), so that a failure can be repeated.
const generator = (seed) => () => {
  seed = (seed + 0x6d2b79f5) | 0;
  let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
  t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
  return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
};

const compareText = (a, b) => (a < b ? -1 : a > b ? 1 : 0);

// The state that a person can see, with times in seconds, as a status combines drains of the same second.
const seen = (model) => {
  const drainOf = (drain) => drain && [drain.reason || "", drain.until ?? null, drain.by ?? null, drain.from ?? null];
  return {
    hosts: model.hosts,
    ranks: [...model.ranks],
    flags: [...model.flags],
    counts: [...model.counts],
    drains: model.hosts.map((_, index) => drainOf(model.drains.get(index))),
    scheduled: model.hosts.map((_, index) => model.scheduled.get(index)?.map(drainOf)),
    properties: [...model.properties].sort(([a], [b]) => compareText(a, b)),
    expiration: model.expiration,
    shrunk: model.shrunk,
    returning: model.returning,
    held: [...model.held],
    used: model.used,
    allocations: [...model.allocations].map(([id, { ranks }]) => [id, ranks]).sort(([a], [b]) => compareText(a, b)),
  };
};

const expected = new Map();
const trueAt = (step) => {
  if (!expected.has(step)) {
    const { status, allocations } = steps[step];
    let { model } = fold(new Model(), { batch: { events: [], last: numberOf(step) } });
    fold(model, { asked: "status" });
    ({ model } = fold(model, { status }));
    fold(model, { asked: "allocations" });
    fold(model, { page: { allocations } });
    expected.set(step, { seen: seen(model), drains: model.drains });
  }
  return expected.get(step);
};

class Page {
  constructor(seed) {
    this.random = generator(seed);
    this.model = new Model();
    this.now = 0; // the present step of the daemon
    this.stream = 0; // the last step whose events the page has
    this.question = null; // {topic, at, after}: `at` is the step at which the page asked
    this.checks = 0;
    this.start();
  }

  whole(n) {
    return Math.floor(this.random() * n);
  }

  take(said) {
    const change = fold(this.model, said);
    const isOther = change.model !== this.model;
    this.model = change.model;
    return isOther;
  }

  start() {
    this.question = null;
    this.take({ lost: true });
    this.take({ batch: { events: [], last: numberOf(this.now) } });
    this.stream = this.now;
  }

  advance() {
    this.now = Math.min(this.now + 1 + this.whole(3), steps.length - 1);
  }

  // A batch may have several changes, and may repeat events that the page has had.
  follow() {
    const from = this.random() < 0.2 ? Math.max(1, this.stream - this.whole(5)) : this.stream + 1;
    const to = Math.min(this.now, this.stream + 1 + this.whole(4));
    const inBetween = steps.slice(from, to + 1).flatMap(({ batches }) => batches);
    if (from > this.stream && this.random() < 0.5 && inBetween.length > 0) {
      this.take({ batch: { events: inBetween.flatMap(({ events }) => events), last: inBetween.at(-1).last } });
    } else for (const batch of inBetween) this.take({ batch });
    this.stream = Math.max(this.stream, to);
  }

  // The daemon has dropped the next events.
  truncate() {
    if (this.stream === this.now) return;
    this.stream += 1 + this.whole(this.now - this.stream);
    this.take({ batch: { events: [{ timestamp: 0, name: "truncate", context: {} }], last: numberOf(this.stream) } });
  }

  ask() {
    if (this.question) return;
    const topic = wants(this.model);
    if (!topic) return;
    this.take({ asked: topic });
    this.question = { topic, at: this.now, after: undefined };
  }

  // Answers with the state of any step between the question and the present.
  answer() {
    if (!this.question) return;
    const { topic, at, after } = this.question;
    const step = at + this.whole(this.now - at + 1);
    if (topic === "status") {
      this.question = null;
      if (this.random() < 0.1) {
        const old = this.whole(step + 1);
        this.take({ status: { ...steps[old].status, sequence: numberOf(old) } });
      } else this.take({ status: steps[step].status });
      return;
    }
    const later = steps[step].allocations.filter(({ id }) => after === undefined || compareText(id, after) > 0);
    const allocations = later.slice(0, 1 + this.whole(5));
    const next = allocations.length < later.length ? allocations.at(-1).id : undefined;
    this.take({ page: { allocations, next } });
    this.question = next === undefined ? null : { topic, at: step, after: next };
    if (wants(this.model) !== "allocations") this.question = null;
  }

  refuse() {
    this.question = null;
  }

  check() {
    if (this.stream !== this.now || wants(this.model) !== "" || this.question) return;
    ++this.checks;
    const { seen: all, drains } = trueAt(this.now);
    assert.deepEqual(seen(this.model), all);
    for (const [index, { timestamp }] of drains)
      assert.ok(Math.abs(this.model.drains.get(index).timestamp - timestamp) <= 1, `the time of drain ${index}`);
  }

  play() {
    const usual = [this.advance, this.follow, this.follow, this.follow, this.ask, this.ask, this.answer, this.answer, this.answer];
    const rare = [this.truncate, this.refuse, this.start, () => this.take({ aged: true })];
    while (this.now < steps.length - 1) {
      const kinds = this.random() < 0.02 ? rare : usual;
      kinds[this.whole(kinds.length)].call(this);
      this.check();
    }
    for (let i = 0; i < 1000 && !(this.stream === this.now && wants(this.model) === "" && !this.question); ++i)
      for (const step of [this.follow, this.ask, this.answer]) step.call(this);
    const before = this.checks;
    this.check();
    assert.equal(this.checks, before + 1, "the model wants something for ever");
  }
}

let checks = 0;
for (let seed = 1; seed <= HISTORIES; ++seed) {
  const page = new Page(seed);
  try {
    page.play();
  } catch (error) {
    console.error(`history ${seed}, step ${page.now}`);
    throw error;
  }
  checks += page.checks;
}
const names = new Set(steps.flatMap(({ batches }) => batches.flatMap(({ events }) => events.map(({ name }) => name))));
for (const name of ["drain", "undrain", "drain-schedule", "online", "offline", "alloc", "free", "property-update", "restart", "resource-define", "shrink"])
  assert.ok(names.has(name), `no ${name} was recorded`);
assert.ok(checks > HISTORIES * 20, `${checks} checks only`);
console.log(`${HISTORIES} histories, ${checks} checks of ${steps.length} steps: ${[...names].sort().join(" ")}`);
