// The states of one node over time, from its events: pieces {from, to, state} for a strip.
import * as idset from "./idset.js";
import * as rset from "./rset.js";
import { freedKeys, keyOf } from "./model.js";
import { ALLOCATED, DRAINED, EXCLUDED, ONLINE, SHOWN, TORPID } from "./states.js";

/** The state of a piece for which there is no record. */
export const UNKNOWN = -1;
const BEGINNINGS = new Set(["restart", "resource-define", "truncate"]);

// The flag that an event sets or clears.
const EFFECTS = new Map([
  ["online", [ONLINE, true]],
  ["offline", [ONLINE, false]],
  ["drain", [DRAINED, true]],
  ["undrain", [DRAINED, false]],
  ["torpid", [TORPID, true]],
  ["lively", [TORPID, false]],
]);

// Whether an alloc-update adds resources of a node.
const adds = ({ added } = {}, rank) => added !== undefined && idset.has(rset.resources(added).ranks, rank);

// Returns the flags before the events. Before the first event that changes it, a flag has the opposite of that event's
// value; without such an event it has its present value. Allocations are known only by their events.
const flagsBefore = (events, rank, present) => {
  let flags = present & (EXCLUDED | ONLINE | DRAINED | TORPID | ALLOCATED);
  let seen = 0;
  const first = (bit, before) => {
    if (seen & bit) return;
    seen |= bit;
    flags = before ? flags | bit : flags & ~bit;
  };
  for (const event of events) {
    const effect = EFFECTS.get(event.name);
    if (effect)
      first(effect[0], !effect[1] || (event.name === "drain" && event.context?.overwrite > 0 && present & DRAINED));
    if (event.name === "restart") first(ONLINE, idset.has(idset.parse(event.context?.online ?? ""), rank));
    if (event.name === "alloc") first(ALLOCATED, false);
    if (event.name === "alloc-update" && adds(event.context, rank)) first(ALLOCATED, false);
    if (event.name === "free") first(ALLOCATED, true);
  }
  return flags;
};

/**
 * Returns the pieces of the time from `from` to `to`, for a node whose flags are `present` now. `events` are those that
 * concern the node, in order.
 */
export const pieces = (events, { rank, present, from, to }) => {
  let flags = flagsBefore(events, rank, present);
  const held = new Set();
  // The time before a start of the daemon without events of the node is not recorded.
  const begins = events.length > 0 && BEGINNINGS.has(events[0].name);
  const result = [{ from, to, state: begins ? UNKNOWN : SHOWN[flags] }];
  const step = (event) => {
    const context = event.context ?? {};
    const effect = EFFECTS.get(event.name);
    if (effect) flags = effect[1] ? flags | effect[0] : flags & ~effect[0];
    if (event.name === "offline") flags &= ~TORPID;
    if (event.name === "restart") {
      const online = idset.has(idset.parse(context.online ?? ""), rank);
      flags = (flags & ~(ONLINE | TORPID)) | (online ? ONLINE : 0);
    }
    if (event.name === "alloc") {
      for (const a of context.allocations ?? []) if (idset.has(rset.resources(a.R).ranks, rank)) held.add(keyOf(a));
      if (held.size > 0) flags |= ALLOCATED;
    }
    if (event.name === "alloc-update" && adds(context, rank)) {
      held.add(keyOf(context));
      flags |= ALLOCATED;
    }
    if (event.name === "free" && (context.idset === undefined || idset.has(idset.parse(context.idset), rank))) {
      for (const key of freedKeys(held, context)) held.delete(key);
      if (held.size === 0) flags &= ~ALLOCATED;
    }
  };
  for (const event of events) {
    step(event);
    const last = result[result.length - 1];
    const state = SHOWN[flags];
    if (state === last.state) continue;
    const at = Math.min(Math.max(event.timestamp, from), to);
    if (at <= last.from) last.state = state;
    else {
      last.to = at;
      result.push({ from: at, to, state });
    }
  }
  // Set the present state at the end: it is more reliable than the events, for instance after a change of the
  // inventory.
  if (result[result.length - 1].state !== SHOWN[present]) result[result.length - 1].state = SHOWN[present];
  return result;
};

/** Returns the seconds in each state, by state. */
export const totals = (strip) => {
  const sums = new Map();
  for (const { from, to, state } of strip) sums.set(state, (sums.get(state) ?? 0) + to - from);
  return sums;
};
