// Folds all data of the daemon into the model. Answers and events come over different connections, so an answer may be
// older or newer than the events around it, but not older than its question. Therefore the events since the question
// are kept, and folded again into the answer. Folding them in order up to the last one leads to the same state even if
// the answer contains some of them, because each event sets absolute values.
import * as idset from "./idset.js";
import * as hostlist from "./hostlist.js";
import * as rset from "./rset.js";
import { Model, freedKeys, keyOf, sizeOf } from "./model.js";
import { ALLOCATED, DRAINED, EXCLUDED, ONLINE, SHOWN, TORPID, UNCHECKED } from "./states.js";

const NOTHING = 0; // Values of `overwrite` in a drain (RFC 44).
const REASON = 1;

/**
 * Folds one of these into a model:
 *   {batch}    a response of the journal: {events, last}
 *   {asked}    a question was sent, `status` or `allocations`; one at a time
 *   {status}   the payload of resource.status
 *   {page}     a payload of resource.allocations
 *   {aged}     the status is so old that states without events may have changed
 *   {lost}     events were missed, or their numbers are no longer valid
 * Returns `model`, which is another one after a status, and what has changed: `nodes` (indices of nodes with another
 * state), `layout` (properties), and `events` (those of the batch that had not come before).
 */
export const fold = (model, said) => {
  const change = { model, nodes: [], layout: false, events: [] };
  if (said.batch) takeBatch(model, said.batch, change);
  else if (said.asked) model.question = { topic: said.asked, events: [], found: new Map() };
  else if (said.status) takeStatus(model, said.status, change);
  else if (said.page) takePage(model, said.page, change);
  else if (said.aged) model.isOutdated = true;
  else if (said.lost) lose(model);
  return change;
};

/** Returns the next question for the daemon: `status`, `allocations`, or nothing. */
export const wants = (model) => (model.isOutdated ? "status" : model.ledgerKnown ? "" : "allocations");

// Forgets the open question, whose answer is outdated, and allocations, of which some may be unknown.
const forget = (model) => {
  model.isOutdated = true;
  model.ledgerKnown = false;
  model.question = null;
};

const lose = (model) => {
  forget(model);
  model.position = undefined;
};

const takeBatch = (model, { events, last }, change) => {
  if (last !== undefined) {
    if (last <= model.position) return;
    // Some of the events in between are no longer kept.
    if (model.position !== undefined && events[0]?.name === "truncate") forget(model);
    model.position = last;
  }
  change.events = events;
  for (const event of events) model.question?.events.push(event);
  for (const event of events) apply(model, event, change);
};

const takeStatus = (before, status, change) => {
  const { question } = before;
  if (question?.topic !== "status") return;
  before.question = null;
  // Ignore an answer of a standby that lags behind the events of its leader.
  if (status.sequence < before.position) return;
  const model = new Model(status.R);
  change.model = model;
  model.position = before.position;
  model.isOutdated = false;
  if (before.ledgerKnown && same(before.hosts, model.hosts) && same(before.ranks, model.ranks)) {
    const { allocations, held, used } = before;
    Object.assign(model, { allocations, held, used, ledgerKnown: true });
  }
  readStates(model, status);
  for (const event of question.events) apply(model, event, change);
  change.nodes = [];
  change.layout = false;
};

const same = (a, b) => a.length === b.length && a.every((value, i) => value === b[i]);

const readStates = (model, status) => {
  const flag = (text, bit) => model.each(idset.parse(text ?? ""), (index) => (model.flags[index] |= bit));
  flag(status.online, ONLINE);
  flag(status.exclude, EXCLUDED);
  flag(status.torpid, TORPID);
  flag(status.unchecked, UNCHECKED);
  if (model.ledgerKnown) model.held.forEach((count, index) => (model.flags[index] |= count > 0 ? ALLOCATED : 0));
  else flag(status.allocated, ALLOCATED);
  for (const [ranks, drain] of Object.entries(status.drain ?? {})) {
    model.each(idset.parse(ranks), (index) => {
      model.flags[index] |= DRAINED;
      model.drains.set(index, drain);
    });
  }
  for (const { targets, ...drain } of status.schedules ?? []) {
    model.each(idset.parse(targets), (index) => setScheduled(model, index, [...scheduledOf(model, index), drain]));
  }
  const parts = Object.entries(status.partitions ?? {}).map(([name, p]) => ({
    name,
    ranks: idset.parse(p.targets),
    waiting: p.waiting,
    leaving: p.leaving,
  }));
  model.partitions = parts.filter(({ name }) => name !== "");
  model.rest = parts.find(({ name }) => name === "") ?? null;
  model.shrunk = hostlist.parse(status.shrunk ?? "");
  model.returning = hostlist.parse(status.returning ?? "");
  for (let index = 0; index < model.size; ++index) ++model.counts[SHOWN[model.flags[index]]];
};

/** Returns a model of a status without events, such as that of a time of the past. */
export const modelOf = (status) => {
  const model = new Model(status.R);
  readStates(model, status);
  return model;
};

const takePage = (model, { allocations, next }, change) => {
  const { question } = model;
  if (question?.topic !== "allocations") return;
  for (const allocation of allocations) question.found.set(keyOf(allocation), allocation);
  if (next !== undefined) return;
  model.question = null;
  model.ledgerKnown = true;
  model.allocations = new Map();
  model.held = new Uint16Array(model.size);
  model.used = { cores: 0, gpus: 0 };
  for (const allocation of question.found.values()) hold(model, allocation);
  for (const event of question.events) if (LEDGER.has(event.name)) apply(model, event, change);
  for (let index = 0; index < model.size; ++index) setFlags(model, index, ALLOCATED, model.held[index] > 0, change);
};

const LEDGER = new Set(["alloc", "alloc-update", "free"]);

const apply = (model, event, change) => {
  if (RENUMBERING.has(event.name)) {
    forget(model);
    model.isRenumbered = true;
  }
  // After a renumbering, ranks of events may be those of other nodes.
  if (!model.isRenumbered) HANDLERS.get(event.name)?.(model, event.context ?? {}, event, change);
};

const RENUMBERING = new Set(["restart", "resource-define", "shrink", "unshrink"]);

// Sets or clears flags of a node.
const setFlags = (model, index, bits, isSet, change) => {
  const before = model.flags[index];
  const flags = isSet ? before | bits : before & ~bits;
  if (before === flags) return;
  --model.counts[SHOWN[before]];
  ++model.counts[SHOWN[flags]];
  model.flags[index] = flags;
  change.nodes.push(index);
};

const hold = (model, allocation) => {
  if (model.allocations.has(keyOf(allocation))) return;
  const { ranks: all, hardware } = rset.resources(allocation.R);
  const ranks = idset.intersection(all, model.rankSet);
  model.allocations.set(keyOf(allocation), { ...allocation, ranks, hardware });
  model.each(ranks, (index) => ++model.held[index]);
  use(model, hardware, ranks, 1);
};

const use = (model, hardware, ranks, sign) => {
  const { cores, gpus } = sizeOf(hardware, ranks);
  model.used = { cores: model.used.cores + sign * cores, gpus: model.used.gpus + sign * gpus };
};

// Releases an allocation; `part` has the freed ranks, null for all.
const release = (model, key, part, change) => {
  const allocation = model.allocations.get(key);
  if (!allocation) return;
  const left = part ? idset.difference(allocation.ranks, part) : [];
  const gone = idset.difference(allocation.ranks, left);
  allocation.ranks = left;
  if (left.length === 0) model.allocations.delete(key);
  use(model, allocation.hardware, gone, -1);
  model.each(gone, (index) => setFlags(model, index, ALLOCATED, --model.held[index] > 0, change));
};

const eachOf = (model, context, f) => model.each(idset.parse(context.idset ?? ""), f);
const sets = (bits, isSet) => (model, context, _event, change) =>
  eachOf(model, context, (index) => setFlags(model, index, bits, isSet, change));

const scheduledOf = (model, index) => model.scheduled.get(index) ?? [];

const setScheduled = (model, index, drains) => {
  if (drains.length === 0) model.scheduled.delete(index);
  else
    model.scheduled.set(
      index,
      drains.sort((a, b) => a.from - b.from),
    );
};

// Applies a drain. On a drained node it keeps the time, the reason or both, as DrainTable of core/module does.
const drain = (model, context, event, change) => {
  const overwrite = context.overwrite ?? REASON;
  eachOf(model, context, (index) => {
    const { by, until, ticket } = context;
    const next = { timestamp: event.timestamp, reason: context.reason ?? "", by, until, ticket };
    const present = model.drains.get(index);
    if (present) {
      if (overwrite === NOTHING && present.reason) return;
      if (overwrite === NOTHING || overwrite === REASON) next.timestamp = present.timestamp;
      if (overwrite === NOTHING) {
        next.until ??= present.until;
        next.ticket ??= present.ticket;
      }
      const isSame = ["timestamp", "reason", "until", "ticket"].every((key) => next[key] === present[key]);
      const isOfOperator = present.by && !("host" in present.by);
      if (isSame && (overwrite === NOTHING || isOfOperator)) next.by = present.by;
    }
    model.drains.set(index, next);
    if (context.scheduled) setScheduled(model, index, scheduledOf(model, index).slice(1));
    if (model.flags[index] & DRAINED) change.nodes.push(index);
    else setFlags(model, index, DRAINED, true, change);
  });
};

const undrain = (model, context, _event, change) => {
  eachOf(model, context, (index) => {
    model.drains.delete(index);
    if (!context["keeps-scheduled"] && model.scheduled.delete(index)) change.nodes.push(index);
    setFlags(model, index, DRAINED, false, change);
  });
};

const schedule = (model, { from, reason = "", until, by, ticket, ...context }, _event, change) => {
  eachOf(model, context, (index) => {
    const others = scheduledOf(model, index).filter((one) => one.from !== from);
    setScheduled(model, index, [...others, { from, reason, until, by, ticket }]);
    change.nodes.push(index);
  });
};

const cancel = (model, context, _event, change) => {
  eachOf(model, context, (index) => {
    const { from } = context;
    setScheduled(model, index, from === undefined ? [] : scheduledOf(model, index).filter((one) => one.from !== from));
    change.nodes.push(index);
  });
};

const updateProperties = (model, context, _event, change) => {
  for (const [name, ranks] of Object.entries(context["property-add"] ?? {})) {
    model.properties.set(name, idset.union(model.properties.get(name) ?? [], idset.parse(ranks)));
  }
  for (const [name, ranks] of Object.entries(context["property-remove"] ?? {})) {
    const left = idset.difference(model.properties.get(name) ?? [], idset.parse(ranks));
    if (left.length > 0) model.properties.set(name, left);
    else model.properties.delete(name);
  }
  change.layout = true;
};

const alloc = (model, context, _event, change) => {
  for (const allocation of context.allocations ?? []) {
    // Allocations can only be counted when all are known.
    if (model.ledgerKnown) hold(model, allocation);
    model.each(rset.resources(allocation.R).ranks, (index) =>
      setFlags(model, index, ALLOCATED, !model.ledgerKnown || model.held[index] > 0, change),
    );
  }
};

const updateAllocation = (model, { added, id, partition, expiration, note }, _event, change) => {
  const allocation = model.ledgerKnown ? model.allocations.get(keyOf({ id, partition })) : undefined;
  if (allocation && expiration !== undefined) allocation.expiration = expiration || undefined;
  if (allocation && note !== undefined) allocation.note = note || undefined;
  if (!added) return;
  // What the allocation holds of each node is listed again.
  model.ledgerKnown = false;
  model.each(rset.resources(added).ranks, (index) => setFlags(model, index, ALLOCATED, true, change));
};

const free = (model, context, _event, change) => {
  if (!model.ledgerKnown) return;
  const part = context.idset === undefined ? null : idset.parse(context.idset);
  for (const key of freedKeys(model.allocations.keys(), context)) release(model, key, part, change);
};

const update = (model, context, event, change) => {
  if (typeof context.expiration === "number") model.expiration = context.expiration;
  updateProperties(model, context, event, change);
  // The enclosing instance has another R, without some of the nodes.
  if (context.shrink !== undefined) forget(model);
};

const HANDLERS = new Map(
  Object.entries({
    drain,
    undrain,
    "drain-schedule": schedule,
    "drain-cancel": cancel,
    online: sets(ONLINE, true),
    offline: sets(ONLINE | TORPID, false),
    torpid: sets(TORPID, true),
    lively: sets(TORPID, false),
    alloc,
    "alloc-update": updateAllocation,
    free,
    "property-update": updateProperties,
    "resource-update": update,
  }),
);
