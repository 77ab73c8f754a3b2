// The state of all nodes in the browser, which the views read. fold.js makes it from the data of the daemon. Nodes are
// addressed by index, 0 to size - 1 in the order of their ranks; columns are typed arrays, so 131,072 nodes cost
// little. A model always has the same nodes: other nodes come with another model.
import * as idset from "./idset.js";
import * as hostlist from "./hostlist.js";
import * as rset from "./rset.js";
import { SHOWN, STATES } from "./states.js";
import { nameOf } from "./users.js";

/**
 * Returns `by` of an event or drain as text: `alice`, `user 1000` without a name, `host node7`. Empty if there is none.
 */
export const actorText = (by) => {
  if (!by || typeof by !== "object") return "";
  const [kind, value] = Object.entries(by)[0] ?? [];
  if (kind === undefined) return "";
  return kind === "userid" ? (nameOf(value) ?? `user ${value}`) : `${kind} ${value}`;
};

/** Returns the key of an allocation, whose id is unique in its partition. An id has no line break. */
export const keyOf = ({ id, partition = "" }) => `${id}\n${partition}`;

/** Returns those of these keys that a `free` names. Without a partition, as before there was one, it means each key. */
export const freedKeys = (keys, { ids = [], partition }) => {
  if (partition !== undefined) return ids.map((id) => keyOf({ id, partition }));
  return [...keys].filter((key) => ids.includes(key.slice(0, key.indexOf("\n"))));
};

/** Returns the id of an allocation, with its partition if there is one. */
export const nameText = ({ id, partition }) => (partition ? `${id} of partition ${partition}` : id);

/** Returns the cores and gpus of hardware on some ranks. */
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
  /** Makes a model of the nodes of an R, with no known states. */
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
    this.held = new Uint16Array(this.size); // Number of known allocations of a part of the node.
    this.drains = new Map(); // From index to {timestamp, reason, by, until}.
    this.scheduled = new Map(); // From index to a list of {from, reason, by, until}, in the order of `from`.
    this.partitions = [];
    this.rest = null; // The part of the targets in no partition, as a partition; null if the status has none.
    this.shrunk = []; // Hosts that were removed from the inventory, and those of them that return.
    this.returning = [];
    this.allocations = new Map(); // From keyOf() to {id, ranks, hardware, R, note, expiration, partition}.
    this.total = sizeOf(this.hardware, this.rankSet);
    this.used = { cores: 0, gpus: 0 }; // Resources of those allocations.
    this.ledgerKnown = false; // Whether all present allocations are in `allocations`.
    // The state of fold.js: the number of the last event, whether a status is wanted, whether nodes have got other
    // ranks since, and the open question.
    this.position = undefined;
    this.isOutdated = true;
    this.isRenumbered = false;
    this.question = null;
    this.hostIndex_ = null;
    this.counts = new Uint32Array(STATES.length);
  }

  /** Returns the index of a rank; undefined for a rank that is not in the inventory. */
  indexOf(rank) {
    if (!this.dense) return this.indexOf_.get(rank);
    return rank < this.size ? rank : undefined;
  }

  /** Returns the index of a host; undefined for an unknown name. */
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

  /** Returns the shown state of a node, an index into STATES. */
  state(index) {
    return SHOWN[this.flags[index]];
  }

  /** Returns the name of the partition of a node, "" for none. */
  partitionOf(index) {
    const rank = this.ranks[index];
    return this.partitions.find((partition) => idset.has(partition.ranks, rank))?.name ?? "";
  }

  /** Returns the names of the properties of a node, in order. */
  propertiesOf(index) {
    const rank = this.ranks[index];
    return [...this.properties]
      .filter(([, ranks]) => idset.has(ranks, rank))
      .map(([name]) => name)
      .sort();
  }
}
