// The list of drained nodes, by reason or by age, and of scheduled drains.
import { el, number, replace, table } from "./dom.js";
import { hostsText } from "./eventtext.js";
import { actorText } from "./model.js";
import { format } from "./router.js";
import { hostsLink, nodeLink, searchLink } from "./rows.js";
import { ONLINE, STATES } from "./states.js";
import { duration, stamp } from "./time.js";

const NO_REASON = "no reason given";
// Maximum numbers of shown rows; the number of the other ones is shown instead of them.
const MAX_GROUPS = 300;
const MAX_NODES = 300;

/** Returns drains as [{reason, nodes, oldest, newest, by, tickets}], the oldest first. `nodes` are in natural order. */
export const byReason = (model) => {
  const groups = new Map();
  for (const index of model.order) {
    const drain = model.drains.get(index);
    if (!drain) continue;
    const reason = drain.reason || NO_REASON;
    let group = groups.get(reason);
    if (!group) {
      group = { reason, nodes: [], oldest: Infinity, newest: 0, by: new Set(), tickets: new Set() };
      groups.set(reason, group);
    }
    group.nodes.push(index);
    group.oldest = Math.min(group.oldest, drain.timestamp);
    group.newest = Math.max(group.newest, drain.timestamp);
    if (drain.by) group.by.add(actorText(drain.by));
    if (drain.ticket) group.tickets.add(drain.ticket);
  }
  return [...groups.values()].sort((a, b) => a.oldest - b.oldest);
};

/** Returns the number of these nodes that are not online. */
export const offlineCount = (model, nodes) => nodes.filter((index) => !(model.flags[index] & ONLINE)).length;

const splitText = (model, nodes) => {
  const counts = new Map();
  for (const index of nodes) {
    const { name } = STATES[STATES[model.state(index)].health];
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  const offline = offlineCount(model, nodes);
  const parts = [...counts].map(([name, count]) => `${number(count)} ${name}`);
  if (offline > 0) parts.push(`${number(offline)} offline`);
  return parts.join(", ");
};

const rest = (all, max, what) =>
  all.length > max ? el("p", { className: "faint" }, `and ${number(all.length - max)} more ${what}`) : null;

const groupCard = (model, group, now) =>
  el(
    "article",
    { className: "card drain-group" },
    el("header", {}, el("h3", {}, group.reason), el("span", { className: "count" }, number(group.nodes.length))),
    el("p", {}, hostsLink(model, hostsText(model, group.nodes))),
    el(
      "p",
      { className: "faint" },
      `oldest ${duration(now - group.oldest)} ago`,
      group.nodes.length > 1 ? `, newest ${duration(now - group.newest)} ago` : "",
      ` · ${splitText(model, group.nodes)}`,
      group.by.size > 0 ? ` · by ${[...group.by].slice(0, 5).join(", ")}` : "",
      group.tickets.size > 0 ? ` · ticket ${[...group.tickets].slice(0, 5).join(", ")}` : "",
      group.reason === NO_REASON
        ? null
        : [" · ", searchLink(`reason:"${group.reason.replaceAll('"', "")}"`, "show on the map")].flat(),
    ),
  );

const reasonOf = ({ reason, ticket }, none) => [reason || none, ticket ? ` · ticket ${ticket}` : ""];

const ageTable = (model, now) => {
  const nodes = [...model.drains.keys()].sort((a, b) => model.drains.get(a).timestamp - model.drains.get(b).timestamp);
  return [
    table(
      ["Node", "State", "For", "Since", "Reason", "By"],
      nodes.slice(0, MAX_NODES).map((index) => {
        const drain = model.drains.get(index);
        return el(
          "tr",
          {},
          el("td", {}, nodeLink(model.hosts[index])),
          el("td", {}, STATES[model.state(index)].label),
          el("td", { className: "number", data: { sort: now - drain.timestamp } }, duration(now - drain.timestamp)),
          el("td", {}, stamp(drain.timestamp)),
          el("td", { className: "wrap" }, reasonOf(drain, el("span", { className: "faint" }, NO_REASON))),
          el("td", {}, actorText(drain.by)),
        );
      }),
    ),
    rest(nodes, MAX_NODES, "nodes"),
  ];
};

const scheduledTable = (model) => {
  const groups = new Map();
  for (const [index, drains] of model.scheduled) {
    for (const drain of drains) {
      const key = JSON.stringify([drain.from, drain.until, drain.reason, drain.by, drain.ticket]);
      if (!groups.has(key)) groups.set(key, { drain, nodes: [] });
      groups.get(key).nodes.push(index);
    }
  }
  if (groups.size === 0) return [];
  const rows = [...groups.values()].sort((a, b) => a.drain.from - b.drain.from);
  return [
    el("h2", {}, "Scheduled"),
    table(
      ["From", "Until", "Hosts", "Reason", "By"],
      rows.slice(0, MAX_GROUPS).map(({ drain, nodes }) =>
        el(
          "tr",
          {},
          el("td", {}, stamp(drain.from)),
          el("td", {}, drain.until ? stamp(drain.until) : "—"),
          el(
            "td",
            { className: "wrap" },
            hostsLink(
              model,
              hostsText(
                model,
                nodes.sort((a, b) => a - b),
              ),
            ),
          ),
          el("td", { className: "wrap" }, reasonOf(drain, "")),
          el("td", {}, actorText(drain.by)),
        ),
      ),
    ),
    rest(rows, MAX_GROUPS, "scheduled drains"),
  ];
};

/** Draws the view into an element. `by` is `reason` or `age`. */
export const render = (element, model, by, now) => {
  const groups = byReason(model);
  const tab = (name, text) =>
    el(
      "a",
      {
        href: format({ view: "drains", params: { by: name === "reason" ? "" : name } }),
        aria: { current: String(by === name) },
      },
      text,
    );
  replace(
    element,
    el(
      "div",
      { className: "section-head" },
      el(
        "h1",
        {},
        model.drains.size === 0
          ? "No drained nodes"
          : `${number(model.drains.size)} drained ${model.drains.size === 1 ? "node" : "nodes"}`,
      ),
      el(
        "div",
        { className: "segmented", role: "group", aria: { label: "Order" } },
        tab("reason", "By reason"),
        tab("age", "By age"),
      ),
    ),
    model.drains.size === 0
      ? el("p", { className: "faint empty" }, "Every node may get work, unless it is offline, torpid or excluded.")
      : null,
    by === "age" && model.drains.size > 0
      ? ageTable(model, now)
      : el(
          "div",
          { className: "cards" },
          groups.slice(0, MAX_GROUPS).map((group) => groupCard(model, group, now)),
        ),
    by === "age" ? null : rest(groups, MAX_GROUPS, "reasons"),
    scheduledTable(model),
  );
};
