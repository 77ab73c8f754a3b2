// The state of all nodes in the browser, for the views to read. fold.js makes it of what the daemon says. Nodes are
// addressed by index, 0 to size - 1 in the order of their ranks; columns are typed arrays, so 131,072 nodes cost little. A
// model has the same nodes for all its life: other nodes come in another model.
import * as idset from "./idset.js";
import * as hostlist from "./hostlist.js";
import * as rset from "./rset.js";
import { SHOWN, STATES } from "./states.js";
import { nameOf } from "./users.js";

/** `by` of an event or drain as text: `alice`, `user 1000` without a name, `host node7`. Empty if there is none. */
export const actorText = (by) => {
  if (!by || typeof by !== "object") return "";
  const [kind, value] = Object.entries(by)[0] ?? [];
  if (kind === undefined) return "";
  return kind === "userid" ? (nameOf(value) ?? `user ${value}`) : `${kind} ${value}`;
};

/** The cores and gpus that hardware has on some ranks. */
export const sizeOf = (hardware, ranks) => {
  const size = { cores: 0, gpus: 0 };
  for (const group of hardware) {
    const count = idset.count(idset.intersection(group.ranks, ranks));
    size.cores += count * group.cores;
    size.gpus += count * group.gpus;
  }
  return size;
};

export class Model {
  /** A model of the nodes of an R, without anything that is known of them. */
  constructor(R) {
    const inventory = rset.parse(R);
    const ranks = [];
    idset.forEach(inventory.ranks, (rank) => ranks.push(rank));
    this.ranks = Uint32Array.from(ranks);
    this.size = this.ranks.length;
    this.dense = this.size === 0 || this.ranks[this.size - 1] === this.size - 1;
    this.indexOf_ = this.dense ? null : new Map(ranks.map((rank, index) => [rank, index]));
    this.hosts = inventory.hosts;
    this.runs = inventory.runs;
    this.rankSet = inventory.ranks;
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
    this.shrunk = []; // Hosts that were removed from the inventory, and those of them that return.
    this.returning = [];
    this.allocations = new Map(); // From id to {id, ranks, hardware, R, note, expiration, partition}.
    this.total = sizeOf(this.hardware, this.rankSet);
    this.used = { cores: 0, gpus: 0 }; // Of those allocations.
    this.ledgerKnown = false; // All present allocations are in `allocations`.
    // Where fold.js stands: the number of the last event, whether a status is wanted, whether nodes have got other ranks
    // since, and the question that is under way.
    this.position = undefined;
    this.isOutdated = true;
    this.isRenumbered = false;
    this.question = null;
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
}
