// Events of the journal (RFC 44 and this project's own) as text, and the nodes that they concern.
import * as hostlist from "./hostlist.js";
import * as idset from "./idset.js";
import * as rset from "./rset.js";
import { actorText, nameText } from "./model.js";
import { stamp } from "./time.js";

export const NAMES = [
  "drain",
  "undrain",
  "drain-schedule",
  "drain-cancel",
  "offline",
  "online",
  "torpid",
  "lively",
  "alloc",
  "alloc-update",
  "free",
  "property-update",
  "resource-update",
  "shrink",
  "unshrink",
  "forget",
  "restart",
  "resource-define",
  "truncate",
];

// Number of hosts from which a list is shown as a number.
const MANY_NODES = 20000;

/** Returns the ranks of an event; empty if it concerns no rank or all. */
export const ranksOf = (event) => {
  const context = event.context ?? {};
  if (event.name === "alloc") return idset.unionAll((context.allocations ?? []).map((a) => rset.resources(a.R).ranks));
  if (event.name === "alloc-update") return context.added ? rset.resources(context.added).ranks : [];
  if (typeof context.idset === "string") return idset.parse(context.idset);
  if (typeof context.ranks === "string") return idset.parse(context.ranks);
  const changes = [...Object.values(context["property-add"] ?? {}), ...Object.values(context["property-remove"] ?? {})];
  return idset.unionAll(changes.map((text) => idset.parse(text)));
};

/** Returns the hosts of nodes as text, or their number if they are many. */
export const hostsText = (model, indices) => {
  if (indices.length > MANY_NODES) return `${indices.length.toLocaleString("en")} nodes`;
  return hostlist.encode(indices.map((index) => model.hosts[index]));
};

/** Returns the hosts of an event as text. */
export const targetsOf = (model, event) => {
  const context = event.context ?? {};
  if (typeof context.nodelist === "string" && event.name !== "restart") return context.nodelist;
  const ranks = ranksOf(event);
  const total = idset.count(ranks);
  if (total > MANY_NODES) return `${total.toLocaleString("en")} nodes`;
  const indices = [];
  model.each(ranks, (index) => indices.push(index));
  return hostsText(model, indices);
};

const listed = (items, max = 5) =>
  items.length > max ? `${items.slice(0, max).join(", ")} and ${items.length - max} more` : items.join(", ");

const propertiesText = (context) => {
  const added = Object.keys(context["property-add"] ?? {}).map((name) => `+${name}`);
  const removed = Object.keys(context["property-remove"] ?? {}).map((name) => `−${name}`);
  return listed([...added, ...removed]);
};

/** Returns the other contents of an event beside its name and nodes: a reason, ids, properties. */
export const detailOf = (event) => {
  const context = event.context ?? {};
  const parts = [];
  if (context.reason) parts.push(context.reason);
  if (typeof context.from === "number") parts.push(`from ${stamp(context.from)}`);
  if (typeof context.until === "number") parts.push(`until ${stamp(context.until)}`);
  if (context.ticket) parts.push(`ticket ${context.ticket}`);
  if (event.name === "alloc")
    parts.push(listed((context.allocations ?? []).map((a) => (a.note ? `${nameText(a)} (${a.note})` : nameText(a)))));
  if (event.name === "alloc-update") parts.push(context.note ? `${nameText(context)} (${context.note})` : nameText(context));
  if (event.name === "free")
    parts.push(listed((context.ids ?? []).map((id) => nameText({ id, partition: context.partition }))));
  const properties = propertiesText(context);
  if (properties) parts.push(properties);
  if (context.method) parts.push(context.method);
  if (typeof context.expiration === "number")
    parts.push(context.expiration ? `expires ${stamp(context.expiration)}` : "expires never");
  return parts.join(" · ");
};

export const actorOf = (event) => actorText(event.context?.by);

// Returns all ids of an event, of which the shown text may leave some out.
const idsOf = ({ context = {} }) => [
  ...(context.ids ?? []),
  ...(context.id === undefined ? [] : [context.id]),
  ...(context.allocations ?? []).map(({ id }) => id),
];

/** Whether an event passes a filter {names: Set, text}. `text` is a host, or a part of the shown text. */
export const passes = (model, event, { names, text }) => {
  if (names.size > 0 && !names.has(event.name)) return false;
  if (!text) return true;
  const index = model.find(text);
  if (index !== undefined) return idset.has(ranksOf(event), model.ranks[index]);
  const lower = text.toLowerCase();
  return [event.name, detailOf(event), actorOf(event), targetsOf(model, event), ...idsOf(event)].some((part) =>
    part.toLowerCase().includes(lower),
  );
};
