// The states of a node: flags as the daemon reports them, and the look of each combination on the map. States have
// their names of this project and of Flux; `allocated` is a use, and such a node is `avail` as well. Colours are in
// style.css.

export const ONLINE = 1;
export const DRAINED = 2;
export const TORPID = 4;
export const EXCLUDED = 8;
export const ALLOCATED = 16;
export const UNCHECKED = 32;

export const AVAIL = 0;
export const STATE_ALLOCATED = 1;
export const DRAINING = 2;
export const STATE_DRAINED = 3;
export const OFFLINE = 4;
export const STATE_TORPID = 5;
export const STATE_EXCLUDED = 6;
export const DRAINING_OFFLINE = 7;
export const DRAINED_OFFLINE = 8;

/** The looks of nodes, by those numbers. `health` is the state of such a node, `label` names all its states. */
export const STATES = [
  { name: "avail", glyph: "", label: "avail", health: AVAIL, text: "available to schedulers" },
  { name: "allocated", glyph: "▪", label: "avail, allocated", health: AVAIL, text: "avail, with an allocation" },
  {
    name: "draining",
    glyph: "◣",
    label: "draining",
    health: DRAINING,
    text: "drained, and its allocation still runs",
  },
  {
    name: "drained",
    glyph: "╱",
    label: "drained",
    health: STATE_DRAINED,
    text: "drained by an operator, a schedule or a health check",
  },
  { name: "offline", glyph: "✕", label: "offline", health: OFFLINE, text: "not online, and nobody has drained it" },
  { name: "torpid", glyph: "≈", label: "torpid", health: STATE_TORPID, text: "its agent is silent" },
  { name: "exclude", glyph: "–", label: "exclude", health: STATE_EXCLUDED, text: "excluded by the configuration" },
  {
    name: "draining-offline",
    glyph: "✕",
    label: "draining, offline",
    health: DRAINING,
    text: "draining, and not online",
  },
  {
    name: "drained-offline",
    glyph: "✕",
    label: "drained, offline",
    health: STATE_DRAINED,
    text: "drained, and not online",
  },
];

/** The looks with a separate number above the views; these include the others. */
export const COUNTED = [AVAIL, STATE_ALLOCATED, DRAINING, STATE_DRAINED, OFFLINE, STATE_TORPID, STATE_EXCLUDED];

/** Returns the number of nodes in a state of COUNTED, from the numbers of nodes with each look. */
export const countOf = (counts, state) =>
  STATES.reduce((sum, { health }, look) => sum + (look === state || health === state ? counts[look] : 0), 0);

/** Whether a look is that of drained nodes that are not online. */
export const isDrainedOffline = (look) => look === DRAINING_OFFLINE || look === DRAINED_OFFLINE;

const shown = (flags) => {
  if (flags & EXCLUDED) return STATE_EXCLUDED;
  if (flags & DRAINED && !(flags & ONLINE)) return flags & ALLOCATED ? DRAINING_OFFLINE : DRAINED_OFFLINE;
  if (flags & DRAINED) return flags & ALLOCATED ? DRAINING : STATE_DRAINED;
  if (!(flags & ONLINE)) return OFFLINE;
  if (flags & TORPID) return STATE_TORPID;
  return flags & ALLOCATED ? STATE_ALLOCATED : AVAIL;
};

/** The look for each combination of flags. */
export const SHOWN = Uint8Array.from({ length: 64 }, (_, flags) => shown(flags));

/** Returns all states of a node in words: `drained, offline`. */
export const describe = (flags) => {
  const words = STATES[SHOWN[flags]].label.split(", ");
  if (!(flags & ONLINE) && !words.includes("offline")) words.push("offline");
  if (flags & ONLINE && flags & TORPID && !words.includes("torpid")) words.push("torpid");
  if (flags & ALLOCATED && !words.includes("allocated") && words[0] !== "draining") words.push("allocated");
  if (flags & UNCHECKED) words.push("health not confirmed");
  return words.join(", ");
};
