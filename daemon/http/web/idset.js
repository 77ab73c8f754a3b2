// Sets of ranks (RFC 22). A set is an array of numbers [first, last, first, last, ...] in ascending order, so its size
// follows the ranges of the text instead of the ranks. No function changes its arguments.

const MAX_ID = 4294967294;

const toNumber = (text, whole) => {
  if (!/^(0|[1-9][0-9]*)$/.test(text)) throw new SyntaxError(`"${whole}" is not an idset`);
  const id = Number(text);
  if (id > MAX_ID) throw new RangeError(`"${whole}" has an id that is too large`);
  return id;
};

/** Returns the set of a text such as `1,7-9` or `[7-9]`. Throws SyntaxError or RangeError. */
export const parse = (text) => {
  let inner = text;
  if (inner.startsWith("[") || inner.endsWith("]")) {
    if (inner.length < 2 || !inner.startsWith("[") || !inner.endsWith("]"))
      throw new SyntaxError(`"${text}" is not an idset`);
    inner = inner.slice(1, -1);
  }
  const ranges = [];
  if (inner === "") return ranges;
  let end = -2; // The last id of `ranges`; no id is adjacent to it yet.
  for (const part of inner.split(",")) {
    const dash = part.indexOf("-");
    const first = toNumber(dash < 0 ? part : part.slice(0, dash), text);
    const last = dash < 0 ? first : toNumber(part.slice(dash + 1), text);
    if (last < first || first <= end) throw new SyntaxError(`"${text}" is not in ascending order`);
    if (first === end + 1) ranges[ranges.length - 1] = last;
    else ranges.push(first, last);
    end = last;
  }
  return ranges;
};

/** Returns the canonical text of a set. */
export const encode = (ranges) => {
  const parts = [];
  for (let i = 0; i < ranges.length; i += 2) {
    parts.push(ranges[i] === ranges[i + 1] ? `${ranges[i]}` : `${ranges[i]}-${ranges[i + 1]}`);
  }
  return parts.join(",");
};

/** Returns the set of ids in ascending order; repeats are allowed. */
export const fromSorted = (ids) => {
  const ranges = [];
  for (const id of ids) {
    const end = ranges.length - 1;
    if (end > 0 && id <= ranges[end] + 1) ranges[end] = Math.max(ranges[end], id);
    else ranges.push(id, id);
  }
  return ranges;
};

export const count = (ranges) => {
  let total = 0;
  for (let i = 0; i < ranges.length; i += 2) total += ranges[i + 1] - ranges[i] + 1;
  return total;
};

/** Calls f(id) for each id in ascending order. */
export const forEach = (ranges, f) => {
  for (let i = 0; i < ranges.length; i += 2) {
    for (let id = ranges[i]; id <= ranges[i + 1]; ++id) f(id);
  }
};

export const has = (ranges, id) => {
  let low = 0;
  let high = ranges.length / 2;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (ranges[2 * middle + 1] < id) low = middle + 1;
    else high = middle;
  }
  return 2 * low < ranges.length && ranges[2 * low] <= id;
};

/** Returns the ids in either set. */
export const union = (a, b) => {
  const result = [];
  let i = 0;
  let j = 0;
  while (i < a.length || j < b.length) {
    const takesA = j >= b.length || (i < a.length && a[i] <= b[j]);
    const first = takesA ? a[i] : b[j];
    const last = takesA ? a[i + 1] : b[j + 1];
    if (takesA) i += 2;
    else j += 2;
    const end = result.length - 1;
    if (end > 0 && first <= result[end] + 1) result[end] = Math.max(result[end], last);
    else result.push(first, last);
  }
  return result;
};

/** Returns the ids of `a` that are not in `b`. */
export const difference = (a, b) => {
  const result = [];
  let j = 0;
  for (let i = 0; i < a.length; i += 2) {
    let first = a[i];
    const last = a[i + 1];
    while (j < b.length && b[j + 1] < first) j += 2;
    for (let k = j; k < b.length && b[k] <= last && first <= last; k += 2) {
      if (first < b[k]) result.push(first, b[k] - 1);
      first = b[k + 1] + 1;
    }
    if (first <= last) result.push(first, last);
  }
  return result;
};

/** Returns the ids in both sets. */
export const intersection = (a, b) => difference(a, difference(a, b));

/** Returns the ids in any of these sets. */
export const unionAll = (sets) => {
  const pairs = [];
  for (const set of sets) for (let i = 0; i < set.length; i += 2) pairs.push([set[i], set[i + 1]]);
  pairs.sort((a, b) => a[0] - b[0]);
  const result = [];
  for (const [first, last] of pairs) {
    const end = result.length - 1;
    if (end > 0 && first <= result[end] + 1) result[end] = Math.max(result[end], last);
    else result.push(first, last);
  }
  return result;
};
