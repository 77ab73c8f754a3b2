// The states of a node: flags as the daemon reports them, and the one state that the map shows for each combination. A
// state has a name, a glyph and a place in the order of attention; colours are in style.css.

export const ONLINE = 1;
export const DRAINED = 2;
export const TORPID = 4;
export const EXCLUDED = 8;
export const ALLOCATED = 16;
export const UNCHECKED = 32;

/** In the order of the summary. `text` explains the state to people. */
export const STATES = [
  { name: "free", glyph: "", text: "online, and nothing is allocated on it" },
  { name: "allocated", glyph: "▪", text: "online, with an allocation" },
  { name: "draining", glyph: "◣", text: "drained, and its allocation still runs" },
  { name: "drained", glyph: "╱", text: "drained by an operator, a schedule or a health check" },
  { name: "offline", glyph: "✕", text: "not online, and nobody has drained it" },
  { name: "torpid", glyph: "≈", text: "its agent is silent" },
  { name: "excluded", glyph: "–", text: "excluded by the configuration" },
];

export const FREE = 0;
export const STATE_ALLOCATED = 1;
export const DRAINING = 2;
export const STATE_DRAINED = 3;
export const OFFLINE = 4;
export const STATE_TORPID = 5;
export const STATE_EXCLUDED = 6;

const shown = (flags) => {
  if (flags & EXCLUDED) return STATE_EXCLUDED;
  if (flags & DRAINED) return flags & ALLOCATED ? DRAINING : STATE_DRAINED;
  if (!(flags & ONLINE)) return OFFLINE;
  if (flags & TORPID) return STATE_TORPID;
  return flags & ALLOCATED ? STATE_ALLOCATED : FREE;
};

/** The state that is shown for each combination of flags. */
export const SHOWN = Uint8Array.from({ length: 64 }, (_, flags) => shown(flags));

/** All that is true of a node, in words: `drained, offline`. */
export const describe = (flags) => {
  const words = [STATES[SHOWN[flags]].name];
  if (!(flags & ONLINE) && !words.includes("offline")) words.push("offline");
  if (flags & ONLINE && flags & TORPID && !words.includes("torpid")) words.push("torpid");
  if (flags & ALLOCATED && !["allocated", "draining"].includes(words[0])) words.push("allocated");
  if (flags & UNCHECKED) words.push("health not confirmed");
  return words.join(", ");
};
