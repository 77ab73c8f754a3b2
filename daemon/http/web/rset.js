// The resource set R (RFC 20): ranks, hosts, the hardware of each rank, and properties.
import * as idset from "./idset.js";
import * as hostlist from "./hostlist.js";

// Returns `4 cores` for an idset text; without a count if the text is no idset.
const amount = (text, name) => {
  const n = idset.count(idset.parse(text));
  return `${n} ${n === 1 ? name : `${name}s`}`;
};

/** Returns the `ranks` (a set) of an R, and their `hardware` as [{ranks, children, cores, gpus, text}]. */
export const resources = (R) => {
  const hardware = [];
  for (const entry of R?.execution?.R_lite ?? []) {
    const own = idset.parse(String(entry.rank));
    const children = entry.children ?? {};
    hardware.push({
      ranks: own,
      children,
      cores: children.core ? idset.count(idset.parse(children.core)) : 0,
      gpus: children.gpu ? idset.count(idset.parse(children.gpu)) : 0,
      text: Object.entries(children)
        .map(([name, ids]) => amount(ids, name))
        .join(", "),
    });
  }
  return { ranks: idset.unionAll(hardware.map((group) => group.ranks)), hardware };
};

/**
 * Returns resources(), and `hosts` in the order of the ranks with the `runs` that they came from, and `properties` from
 * names to sets.
 */
export const parse = (R) => {
  const execution = R?.execution ?? {};
  const runs = (execution.nodelist ?? []).flatMap(hostlist.parseRuns);
  const properties = new Map();
  for (const [name, text] of Object.entries(execution.properties ?? {})) properties.set(name, idset.parse(text));
  return { ...resources(R), hosts: hostlist.expand(runs), runs, properties, expiration: execution.expiration ?? 0 };
};
