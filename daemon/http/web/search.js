// What the search field means: words that must all hold. `offline` or `state:offline` is a state, `prop:gpu` a property,
// `part:batch` a partition, `reason:disk` a part of a reason, `node[3-5]` a list of hosts, `0-99` ranks, and any other
// word a part of a host name, or of a reason.
import * as idset from "./idset.js";
import * as hostlist from "./hostlist.js";
import { DRAINED, EXCLUDED, ONLINE, STATES, TORPID, UNCHECKED } from "./states.js";

// Flags by the words of `resourcectl status` and of the metrics, beside the states of the map.
const FLAG_WORDS = new Map([
  ["online", (f) => f & ONLINE],
  ["up", (f) => f & ONLINE && !(f & (DRAINED | TORPID | EXCLUDED))],
  ["down", (f) => !(f & ONLINE) || f & (DRAINED | TORPID)],
  ["unchecked", (f) => f & UNCHECKED],
]);
const KINDS = ["state", "prop", "part", "reason", "host"];

const tryParse = (parse, text) => {
  try {
    return parse(text);
  } catch {
    return null;
  }
};

const stateTest = (model, word) => {
  const state = STATES.findIndex((s) => s.name === word);
  if (state >= 0) return (index) => model.state(index) === state;
  const flag = FLAG_WORDS.get(word);
  return flag ? (index) => Boolean(flag(model.flags[index])) : null;
};

const inSet = (model, ranks) => (index) => idset.has(ranks, model.ranks[index]);

const hostTest = (model, word) => {
  if (word.includes("[") || word.includes(",")) {
    const names = tryParse(hostlist.parse, word);
    if (names) {
      const wanted = new Set(names);
      return (index) => wanted.has(model.hosts[index]);
    }
  }
  return (index) => model.hosts[index]?.includes(word);
};

const reasonTest = (model, word) => {
  const lower = word.toLowerCase();
  return (index) => Boolean(model.drains.get(index)?.reason?.toLowerCase().includes(lower));
};

const wordTest = (model, word) => {
  const colon = word.indexOf(":");
  const kind = word.slice(0, Math.max(colon, 0));
  const rest = word.slice(colon + 1);
  if (KINDS.includes(kind)) {
    if (kind === "state") return stateTest(model, rest) ?? (() => false);
    if (kind === "prop") return inSet(model, model.properties.get(rest) ?? []);
    if (kind === "part") return inSet(model, model.partitions.find((p) => p.name === rest)?.ranks ?? []);
    if (kind === "reason") return reasonTest(model, rest);
    return hostTest(model, rest);
  }
  const state = stateTest(model, word);
  if (state) return state;
  const ranks = /^[0-9]/.test(word) ? tryParse(idset.parse, word) : null;
  const host = hostTest(model, word);
  const reason = reasonTest(model, word);
  const rank = ranks ? inSet(model, ranks) : () => false;
  return (index) => host(index) || rank(index) || reason(index);
};

/** Words of a query; quotes keep blanks: `reason:"bad disk"`. */
export const words = (query) =>
  [...query.matchAll(/([a-z]+:)?"([^"]*)"?|\S+/g)]
    .map((m) => (m[2] === undefined ? m[0] : (m[1] ?? "") + m[2]))
    .filter(Boolean);

/** A Uint8Array with 1 for each node that matches, and how many do; null for an empty query. */
export const match = (model, query) => {
  const tests = words(query).map((word) => wordTest(model, word));
  if (tests.length === 0) return null;
  const mask = new Uint8Array(model.size);
  let count = 0;
  for (let index = 0; index < model.size; ++index) {
    if (!tests.every((test) => test(index))) continue;
    mask[index] = 1;
    ++count;
  }
  return { mask, count };
};

/** The only node of that name, or the first match in natural order; undefined for none. */
export const first = (model, query) => {
  const exact = model.find(query.trim());
  if (exact !== undefined) return exact;
  const found = match(model, query);
  return found?.count ? model.order.find((index) => found.mask[index]) : undefined;
};
