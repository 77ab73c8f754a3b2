// Lists of hosts (RFC 29): conversion from text to names and back to compressed text, and the natural order of names.

// Maximum number of hosts of one bracketed expression, as in the daemon.
const MAX_EXPANSION = 1 << 20;

const fail = (text, why) => {
  throw new SyntaxError(`"${text}" is not a hostlist: ${why}`);
};

/** Returns the expressions of a text, split at the commas outside of brackets. */
const split = (text) => {
  const parts = [];
  let start = 0;
  let depth = 0;
  for (let i = 0; i < text.length; ++i) {
    const c = text[i];
    if (c === "[" && ++depth > 1) fail(text, "brackets in brackets");
    if (c === "]" && --depth < 0) fail(text, 'a "[" is missing');
    if (c === "," && depth === 0) {
      parts.push(text.slice(start, i));
      start = i + 1;
    }
  }
  if (depth > 0) fail(text, 'a "]" is missing');
  parts.push(text.slice(start));
  return parts;
};

/**
 * Returns the runs of a text: {prefix, suffix, first, count, width}. The hosts of a run have consecutive numbers of at
 * least `width` digits; a host without a bracket is a run of one with width 0 and its name in `prefix`. Throws
 * SyntaxError for a bad text and RangeError for one with too many hosts.
 */
export const parseRuns = (text) => {
  const runs = [];
  if (text === "") return runs;
  for (const part of split(text)) {
    if (part === "") fail(text, "a host is missing");
    if (!/^[\x21-\x7e]*$/.test(part)) fail(text, "a host has a character that is not allowed");
    const open = part.indexOf("[");
    if (open < 0) {
      runs.push({ prefix: part, suffix: "", first: 0, count: 1, width: 0 });
      continue;
    }
    const close = part.indexOf("]");
    const prefix = part.slice(0, open);
    const suffix = part.slice(close + 1);
    if (suffix.includes("[")) fail(text, "a second bracket");
    let width = 0;
    let total = 0;
    for (const item of part.slice(open + 1, close).split(",")) {
      const match = /^([0-9]{1,15})(?:-([0-9]{1,15}))?$/.exec(item);
      if (!match) fail(text, `"${item}" is not a number or a range`);
      const first = Number(match[1]);
      const last = Number(match[2] ?? match[1]);
      if (last < first) fail(text, "a range runs backwards");
      if (width === 0) width = match[1].length > 1 && match[1][0] === "0" ? match[1].length : 1;
      total += last - first + 1;
      if (total > MAX_EXPANSION) throw new RangeError(`"${part}" stands for too many hosts`);
      runs.push({ prefix, suffix, first, count: last - first + 1, width });
    }
  }
  return runs;
};

/** Returns the names of runs, in order. */
export const expand = (runs) => {
  const names = [];
  for (const { prefix, suffix, first, count, width } of runs) {
    if (width === 0) names.push(prefix);
    else if (width === 1) for (let i = 0; i < count; ++i) names.push(prefix + (first + i) + suffix);
    else for (let i = 0; i < count; ++i) names.push(prefix + String(first + i).padStart(width, "0") + suffix);
  }
  return names;
};

/** Returns the names of a text, in order. Throws as parseRuns() does. */
export const parse = (text) => expand(parseRuns(text));

// Matches numbers of at most 15 digits: longer ones are exact in no JavaScript number, so they stay text.
const DIGITS = /[0-9]{1,15}/g;

// Returns the numbers in a name with the text on the left and right of each.
const splits = (name) => {
  const found = [];
  for (const match of name.matchAll(DIGITS)) {
    const end = match.index + match[0].length;
    found.push({ prefix: name.slice(0, match.index), digits: match[0], suffix: name.slice(end) });
  }
  return found;
};

const widthOf = (digits) => (digits.length > 1 && digits[0] === "0" ? digits.length : 1);
const padded = (number, width) => String(number).padStart(width, "0");

// Returns the stem of two neighbours that differ in at most one number, which the second writes with the digits of the
// first.
const sharedStem = (a, b) => {
  const of_b = splits(b);
  for (const left of splits(a).reverse()) {
    const right = of_b.find((s) => s.prefix === left.prefix && s.suffix === left.suffix);
    if (!right) continue;
    const width = widthOf(left.digits);
    if (padded(Number(right.digits), width) === right.digits) {
      return { prefix: left.prefix, suffix: left.suffix, width, numbers: [Number(left.digits), Number(right.digits)] };
    }
  }
  return null;
};

const writeNumbers = (numbers, width) => {
  const parts = [];
  for (let i = 0; i < numbers.length;) {
    let j = i;
    while (j + 1 < numbers.length && numbers[j + 1] === numbers[j] + 1) ++j;
    parts.push(i === j ? padded(numbers[i], width) : `${padded(numbers[i], width)}-${padded(numbers[j], width)}`);
    i = j + 1;
  }
  return parts.join(",");
};

/** Returns the compressed text of names; their order is kept. */
export const encode = (names) => {
  const parts = [];
  let single = null; // A name that no other name has joined yet.
  let group = null; // Names with a common stem.
  const flush = () => {
    if (single !== null) parts.push(single);
    if (group) parts.push(`${group.prefix}[${writeNumbers(group.numbers, group.width)}]${group.suffix}`);
    single = null;
    group = null;
  };
  for (const name of names) {
    if (
      group &&
      name.startsWith(group.prefix) &&
      name.endsWith(group.suffix) &&
      name.length > group.prefix.length + group.suffix.length
    ) {
      const digits = name.slice(group.prefix.length, name.length - group.suffix.length);
      if (/^[0-9]{1,15}$/.test(digits) && padded(Number(digits), group.width) === digits) {
        group.numbers.push(Number(digits));
        continue;
      }
    }
    if (single !== null) {
      const stem = sharedStem(single, name);
      if (stem) {
        single = null;
        group = stem;
        continue;
      }
    }
    flush();
    single = name;
  }
  flush();
  return parts.join(",");
};

/** Returns a key whose order as text is the natural order of the names: numbers by value, so `n9` comes before `n10`. */
export const naturalKey = (name) =>
  name.replace(/[0-9]+/g, (digits) => digits.replace(/^0+(?=.)/, "").padStart(20, "0"));

/**
 * Returns the positions of names in natural order, as a Uint32Array. `runs`, if given, are those that `names` came
 * from.
 */
export const naturalOrder = (names, runs) => {
  const order = Uint32Array.from({ length: names.length }, (_, i) => i);
  if (runs && inOrder(names, runs)) return order;
  const keys = names.map(naturalKey);
  return order.sort((a, b) => (keys[a] < keys[b] ? -1 : keys[a] > keys[b] ? 1 : a - b));
};

// Whether names are in order. A run is in order by itself, so only the boundaries between runs are compared.
const inOrder = (names, runs) => {
  let end = 0;
  for (const run of runs) {
    if (end > 0 && naturalKey(names[end - 1]) > naturalKey(names[end])) return false;
    end += run.count;
  }
  return true;
};

/** Returns the name without its last number and the text after that: `rack3-node12` gives `rack3-node`. */
export const stem = (name) => name.replace(/[0-9]+[^0-9]*$/, "");
