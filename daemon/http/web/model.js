// The state of all nodes in the browser. load() takes the payloads of resource.status, apply() folds the events of the
// journal into it as the daemon does (core/module), so that no event needs another request. Nodes are addressed by
// index, 0 to size - 1 in the order of their ranks; columns are typed arrays, so 131,072 nodes cost little.
//
// An event may be folded that the status has already: events are applied in order up to the last one, and each sets the
// state of its nodes, so the result is the same.
import * as idset from "./idset.js";
import * as hostlist from "./hostlist.js";
import * as rset from "./rset.js";
import { ALLOCATED, DRAINED, EXCLUDED, ONLINE, SHOWN, STATES, TORPID, UNCHECKED } from "./states.js";

const NOTHING = 0; // Values of `overwrite` in a drain (RFC 44).
const REASON = 1;

/** `by` of an event or drain as text: `user 1000`, `node7`. Empty if there is none. */
export const actorText = (by) => {
  if (!by || typeof by !== "object") return "";
  const [kind, value] = Object.entries(by)[0] ?? [];
  if (kind === undefined) return "";
  return kind === "userid" ? `user ${value}` : kind === "signal" ? `signal ${value}` : `${kind} ${value}`;
};

const same = (a, b) => a.length === b.length && a.every((value, i) => value === b[i]);

export class Model {
  constructor() {
    this.size = 0;
    this.clear(rset.parse(null));
  }

  clear(inventory) {
    const ranks = [];
    idset.forEach(inventory.ranks, (rank) => ranks.push(rank));
    this.ranks = Uint32Array.from(ranks);
    this.size = this.ranks.length;
    this.dense = this.size === 0 || this.ranks[this.size - 1] === this.size - 1;
    this.indexOf_ = this.dense ? null : new Map(ranks.map((rank, index) => [rank, index]));
    this.hosts = inventory.hosts;
    this.runs = inventory.runs;
    this.order = hostlist.naturalOrder(this.hosts, inventory.runs);
    this.hardware = inventory.hardware;
    this.properties = inventory.properties;
    this.expiration = inventory.expiration;
    this.hardwareOf = new Uint32Array(this.size);
    this.hardware.forEach((group, number) => this.each(group.ranks, (index) => (this.hardwareOf[index] = number)));
    this.flags = new Uint8Array(this.size);
    this.held = new Uint16Array(this.size); // Allocations that are known to hold a part of the node.
    this.drains = new Map(); // From index to {timestamp, reason, by, until}.
    this.scheduled = new Map(); // From index to {from, reason, by, until}.
    this.partitions = [];
    this.shrunk = "";
    this.returning = "";
    this.allocations = new Map(); // From id to {id, ranks, R, note, expiration, partition}.
    this.ledgerKnown = false; // All present allocations are in `allocations`.
    this.hostIndex_ = null;
    this.counts = new Uint32Array(STATES.length);
  }

  /** The index of a rank; undefined for a rank that is not in the inventory. */
  indexOf(rank) {
    if (!this.dense) return this.indexOf_.get(rank);
    return rank < this.size ? rank : undefined;
  }

  /** The index of a host; undefined for an unknown name. */
  find(host) {
    this.hostIndex_ ??= new Map(this.hosts.map((name, index) => [name, index]));
    return this.hostIndex_.get(host);
  }

  /** Calls f(index) for each rank of a set that is in the inventory. */
  each(ranges, f) {
    if (this.dense) {
      for (let i = 0; i < ranges.length; i += 2) {
        const last = Math.min(ranges[i + 1], this.size - 1);
        for (let index = ranges[i]; index <= last; ++index) f(index);
      }
      return;
    }
    for (let i = 0; i < ranges.length; i += 2) {
      for (let index = this.lowerBound_(ranges[i]); index < this.size && this.ranks[index] <= ranges[i + 1]; ++index)
        f(index);
    }
  }

  lowerBound_(rank) {
    let low = 0;
    let high = this.size;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.ranks[middle] < rank) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** The shown state of a node, an index into STATES. */
  state(index) {
    return SHOWN[this.flags[index]];
  }

  /** Replaces the state by the payload of resource.status. Known allocations stay if the nodes are the same. */
  load(status) {
    const { hosts, ranks, allocations, held, ledgerKnown } = this;
    this.clear(rset.parse(status.R));
    const keepsLedger = ledgerKnown && same(hosts, this.hosts) && same(ranks, this.ranks);
    if (keepsLedger) Object.assign(this, { allocations, held, ledgerKnown });
    const flag = (text, bit) => this.each(idset.parse(text ?? ""), (index) => (this.flags[index] |= bit));
    flag(status.online, ONLINE);
    flag(status.exclude, EXCLUDED);
    flag(status.torpid, TORPID);
    // Events that came before this status may be newer than it; the ledger has them.
    if (keepsLedger) this.held.forEach((count, index) => (this.flags[index] |= count > 0 ? ALLOCATED : 0));
    else flag(status.allocated, ALLOCATED);
    flag(status.unchecked, UNCHECKED);
    for (const [ranks, drain] of Object.entries(status.drain ?? {})) {
      this.each(idset.parse(ranks), (index) => {
        this.flags[index] |= DRAINED;
        this.drains.set(index, drain);
      });
    }
    for (const [ranks, drain] of Object.entries(status.scheduled ?? {})) {
      this.each(idset.parse(ranks), (index) => this.scheduled.set(index, drain));
    }
    this.partitions = Object.entries(status.partitions ?? {}).map(([name, p]) => ({
      name,
      ranks: idset.parse(p.targets),
      waiting: p.waiting,
      leaving: p.leaving,
    }));
    this.shrunk = status.shrunk ?? "";
    this.returning = status.returning ?? "";
    for (let index = 0; index < this.size; ++index) ++this.counts[SHOWN[this.flags[index]]];
  }

  /** The name of the partition of a node, "" for none. */
  partitionOf(index) {
    const rank = this.ranks[index];
    return this.partitions.find((partition) => idset.has(partition.ranks, rank))?.name ?? "";
  }

  /** The names of the properties of a node, in order. */
  propertiesOf(index) {
    const rank = this.ranks[index];
    return [...this.properties]
      .filter(([, ranks]) => idset.has(ranks, rank))
      .map(([name]) => name)
      .sort();
  }

  /**
   * Folds an event of the journal. Returns the indices of the nodes whose state has changed, and what else has:
   * `layout` for properties or the set of nodes, `stale` if only a new status can tell.
   */
  apply(event) {
    const change = { nodes: [], layout: false, stale: false };
    const handler = HANDLERS.get(event.name);
    if (handler) handler(this, event.context ?? {}, event, change);
    return change;
  }

  /** Adds a page of resource.allocations. `gone` has the ids that were freed since the page was asked for. */
  learn(allocations, gone) {
    for (const allocation of allocations) if (!gone.has(allocation.id)) this.hold_(allocation, () => {});
  }

  set_(index, flags, change) {
    const before = this.flags[index];
    if (before === flags) return;
    --this.counts[SHOWN[before]];
    ++this.counts[SHOWN[flags]];
    this.flags[index] = flags;
    change.nodes.push(index);
  }

  hold_(allocation, changed) {
    if (this.allocations.has(allocation.id)) return;
    const ranks = rset.parse(allocation.R).ranks;
    this.allocations.set(allocation.id, { ...allocation, ranks });
    this.each(ranks, (index) => {
      ++this.held[index];
      changed(index);
    });
  }

  release_(id, part, change) {
    const allocation = this.allocations.get(id);
    if (!allocation) return false;
    const gone = part ? idset.difference(allocation.ranks, idset.difference(allocation.ranks, part)) : allocation.ranks;
    allocation.ranks = idset.difference(allocation.ranks, gone);
    if (allocation.ranks.length === 0 || !part) this.allocations.delete(id);
    this.each(gone, (index) => {
      if (this.held[index] > 0) --this.held[index];
      // Before the whole ledger is known, another allocation may hold the node: the next status tells.
      if (this.held[index] === 0) this.set_(index, this.flags[index] & ~ALLOCATED, change);
    });
    return true;
  }
}

const setsFlag = (bit) => (model, context, _event, change) =>
  model.each(idset.parse(context.idset ?? ""), (index) => model.set_(index, model.flags[index] | bit, change));
const clearsFlag = (bits) => (model, context, _event, change) =>
  model.each(idset.parse(context.idset ?? ""), (index) => model.set_(index, model.flags[index] & ~bits, change));

// A drain on a node that is drained keeps the time, the reason or both, as DrainTable of core/module does.
const drain = (model, context, event, change) => {
  model.each(idset.parse(context.idset ?? ""), (index) => {
    const overwrite = context.overwrite ?? REASON;
    const next = { timestamp: event.timestamp, reason: context.reason ?? "", by: context.by, until: context.until };
    const present = model.drains.get(index);
    if (present) {
      if (overwrite === NOTHING && present.reason) return;
      if (overwrite === NOTHING || overwrite === REASON) next.timestamp = present.timestamp;
      if (overwrite === NOTHING) next.until ??= present.until;
    }
    model.drains.set(index, next);
    if (context.scheduled) model.scheduled.delete(index);
    if (model.flags[index] & DRAINED) change.nodes.push(index);
    else model.set_(index, model.flags[index] | DRAINED, change);
  });
};

const undrain = (model, context, _event, change) => {
  model.each(idset.parse(context.idset ?? ""), (index) => {
    model.drains.delete(index);
    if (!context["keeps-scheduled"] && model.scheduled.delete(index)) change.nodes.push(index);
    model.set_(index, model.flags[index] & ~DRAINED, change);
  });
};

const schedule = (model, context, _event, change) => {
  model.each(idset.parse(context.idset ?? ""), (index) => {
    model.scheduled.set(index, {
      from: context.from,
      reason: context.reason ?? "",
      until: context.until,
      by: context.by,
    });
    change.nodes.push(index);
  });
};

const cancel = (model, context, _event, change) => {
  model.each(idset.parse(context.idset ?? ""), (index) => {
    if (model.scheduled.delete(index)) change.nodes.push(index);
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
    model.hold_(allocation, (index) => model.set_(index, model.flags[index] | ALLOCATED, change));
  }
};

const free = (model, context, _event, change) => {
  const part = context.idset === undefined ? null : idset.parse(context.idset);
  for (const id of context.ids ?? []) {
    const known = model.release_(id, part, change);
    // Of an allocation that is not known, nodes that hold nothing else must be free; only the daemon knows which.
    if (!known || !model.ledgerKnown) change.stale = true;
  }
};

const stale = (_model, _context, _event, change) => {
  change.stale = true;
};

const update = (model, context, event, change) => {
  if (typeof context.expiration === "number") model.expiration = context.expiration;
  updateProperties(model, context, event, change);
  change.stale = context.shrink !== undefined;
};

const HANDLERS = new Map(
  Object.entries({
    drain,
    undrain,
    "drain-schedule": schedule,
    "drain-cancel": cancel,
    online: setsFlag(ONLINE),
    offline: clearsFlag(ONLINE | TORPID),
    torpid: setsFlag(TORPID),
    lively: clearsFlag(TORPID),
    alloc,
    free,
    "property-update": updateProperties,
    "resource-update": update,
    // These renumber or replace nodes.
    restart: stale,
    "resource-define": stale,
    shrink: stale,
    unshrink: stale,
  }),
);
