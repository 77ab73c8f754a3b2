// The language of the search field: words that must all match. `torpid` or `state:torpid` is a state, `prop:gpu` a
// property, `part:batch` a partition, `reason:disk` a part of a reason, `job:f23` a part of an allocation's id,
// `node[3-5]` a list of hosts, `0-99` ranks, and any other word a part of a host name, of a reason, or the id of an
// allocation. Case is ignored, except where names differ by it alone.
import * as idset from "./idset.js";
import * as hostlist from "./hostlist.js";
import { AVAIL, DRAINED, EXCLUDED, ONLINE, STATES, TORPID, UNCHECKED } from "./states.js";

// Flags by the words of `resourcectl` and of the metrics. `offline` finds drained nodes, too.
const FLAG_WORDS = new Map([
  ["offline", (f) => !(f & ONLINE)],
  ["online", (f) => f & ONLINE],
  ["up", (f) => f & ONLINE && !(f & (DRAINED | TORPID | EXCLUDED))],
  ["down", (f) => !(f & ONLINE) || f & (DRAINED | TORPID)],
  ["unchecked", (f) => f & UNCHECKED],
]);
const SAME = new Map([["excluded", "exclude"]]);
const KINDS = ["state", "prop", "part", "reason", "job", "host"];

// The error of a malformed search. The text is for the user who wrote it.
class Malformed extends Error {}

const parsed = (parse, text) => {
  try {
    return parse(text);
  } catch (error) {
    throw new Malformed(error.message);
  }
};

// Returns the state of a word, as counted above the views; null for none.
const exactState = (model, word) => {
  const name = SAME.get(word) ?? word;
  if (name === "free") return (index) => model.state(index) === AVAIL;
  const look = STATES.findIndex((state) => state.name === name);
  return look < 0 ? null : (index) => model.state(index) === look || STATES[model.state(index)].health === look;
};

const flagTest = (model, word) => {
  const flag = FLAG_WORDS.get(word);
  return flag ? (index) => Boolean(flag(model.flags[index])) : null;
};

const stateTest = (model, word) => {
  const lower = word.toLowerCase();
  return flagTest(model, lower) ?? exactState(model, lower);
};

const inSet = (model, ranks) => (index) => idset.has(ranks, model.ranks[index]);

// Returns the value of a name in a map, or else of one that differs in case only.
const named = (map, name, what) => {
  const lower = name.toLowerCase();
  const key = map.has(name) ? name : [...map.keys()].find((other) => other.toLowerCase() === lower);
  if (key === undefined) throw new Malformed(`there is no ${what} "${name}"`);
  return map.get(key);
};

const listTest = (model, word) => {
  const wanted = new Set(parsed(hostlist.parse, word.toLowerCase()));
  return (index) => wanted.has(model.hosts[index]?.toLowerCase());
};

const nameTest = (model, word) => {
  const lower = word.toLowerCase();
  return (index) => Boolean(model.hosts[index]?.toLowerCase().includes(lower));
};

const rankTest = (model, word) => inSet(model, parsed(idset.parse, word));

const isList = (word) => /[[\],]/.test(word);

const reasonTest = (model, word) => {
  const lower = word.toLowerCase();
  return (index) => Boolean(model.drains.get(index)?.reason?.toLowerCase().includes(lower));
};

const jobTest = (model, isMeant) => {
  const ranks = [...model.allocations.values()].filter(({ id }) => isMeant(id)).map((allocation) => allocation.ranks);
  return inSet(model, idset.unionAll(ranks));
};

const kindTest = (model, kind, rest) => {
  if (kind === "prop") return inSet(model, named(model.properties, rest, "property"));
  if (kind === "part") {
    const partitions = new Map(model.partitions.map(({ name, ranks }) => [name, ranks]));
    return inSet(model, named(partitions, rest, "partition"));
  }
  if (kind === "reason") return reasonTest(model, rest);
  if (kind === "job") return jobTest(model, (id) => id.includes(rest));
  if (kind === "host") return (isList(rest) ? listTest : nameTest)(model, rest);
  const lower = rest.toLowerCase();
  const state = exactState(model, lower) ?? flagTest(model, lower);
  if (!state) throw new Malformed(`there is no state "${rest}"`);
  return state;
};

// Returns the test of a word without a kind, which may have several meanings. A word that is malformed in one meaning
// may still be a part of a text; `doubts` gets the error.
const wordTest = (model, word, doubts) => {
  const colon = word.indexOf(":");
  const kind = word.slice(0, Math.max(colon, 0)).toLowerCase();
  if (KINDS.includes(kind)) return kindTest(model, kind, word.slice(colon + 1));
  const state = stateTest(model, word);
  if (state) return state;
  const tests = [nameTest(model, word), reasonTest(model, word), jobTest(model, (id) => id === word)];
  const list = /^[0-9][0-9,-]*$/.test(word) ? rankTest : isList(word) ? listTest : null;
  try {
    if (list) tests.push(list(model, word));
  } catch (error) {
    if (!(error instanceof Malformed)) throw error;
    doubts.push(error.message);
  }
  return (index) => tests.some((test) => test(index));
};

/** Returns the words of a query; quotes keep blanks: `reason:"bad disk"`. */
export const words = (query) =>
  [...query.matchAll(/([a-z]+:)?"([^"]*)"?|\S+/gi)]
    .map((m) => (m[2] === undefined ? m[0] : (m[1] ?? "") + m[2]))
    .filter(Boolean);

/**
 * Returns a Uint8Array `mask` with 1 for each node that matches, and their number `count`; null for an empty query. Has
 * `problem`, a text, if the query is malformed.
 */
export const match = (model, query) => {
  const mask = new Uint8Array(model.size);
  const doubts = [];
  let tests;
  try {
    tests = words(query).map((word) => wordTest(model, word, doubts));
  } catch (error) {
    if (!(error instanceof Malformed)) throw error;
    return { mask, count: 0, problem: error.message };
  }
  if (tests.length === 0) return null;
  let count = 0;
  for (let index = 0; index < model.size; ++index) {
    if (!tests.every((test) => test(index))) continue;
    mask[index] = 1;
    ++count;
  }
  return { mask, count, problem: count === 0 ? doubts[0] : undefined };
};

/** Returns the only node of that name, or the first match in natural order; undefined for none. */
export const first = (model, query) => {
  const exact = model.find(query.trim());
  if (exact !== undefined) return exact;
  const found = match(model, query);
  return found?.count ? model.order.find((index) => found.mask[index]) : undefined;
};
