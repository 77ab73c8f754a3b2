// Names of users: events and answers have their numbers, which the user database of the daemon's machine maps to names.
// The daemon reads it at the first request, so a name may come with a later answer.
import * as api from "./api.js";

const TOPIC = "resource.user-names";
const FIRST_MS = 50;
const AGAIN_MS = 1000;
const TRIES = 10;
const MOST = 256;

const names = new Map();
const tries = new Map();
let changed = null;
let timer = null;

const ask = async () => {
  timer = null;
  const asked = [...tries.entries()].filter(([uid, left]) => left > 0 && !names.has(uid)).slice(0, MOST);
  if (asked.length === 0) return;
  for (const [uid, left] of asked) tries.set(uid, left - 1);
  const userids = asked.map(([uid]) => uid).sort((a, b) => a - b).join(",");
  const answer = await api.get(TOPIC, { userids }).catch(() => null);
  const found = Object.entries(answer?.names ?? {});
  for (const [uid, name] of found) names.set(Number(uid), name);
  if (found.length > 0) changed();
  timer ??= setTimeout(ask, AGAIN_MS);
};

/** Returns the name of a user, or null while it is unknown; then it is requested. */
export const nameOf = (uid) => {
  if (names.has(uid)) return names.get(uid);
  if (changed && !tries.has(uid)) {
    tries.set(uid, TRIES);
    timer ??= setTimeout(ask, FIRST_MS);
  }
  return null;
};

/** Starts to request names; calls a function after new ones. */
export const start = (onChange) => {
  changed = onChange;
};
