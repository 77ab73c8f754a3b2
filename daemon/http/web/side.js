// The lists beside the map: nodes that need attention now, and the last events.
import { badge, el, number, replace } from "./dom.js";
import { byReason, offlineCount } from "./drains.js";
import { hostsText } from "./eventtext.js";
import { eventRow, hostsLink } from "./rows.js";
import { OFFLINE, STATES, STATE_TORPID } from "./states.js";
import { duration } from "./time.js";

const MAX_REASONS = 6;
const MAX_EVENTS = 25;

const stateItem = (model, state) => {
  if (model.counts[state] === 0) return null;
  const nodes = [];
  for (const index of model.order) if (model.state(index) === state) nodes.push(index);
  return el(
    "li",
    {},
    badge(STATES[state]),
    el(
      "div",
      {},
      el("strong", {}, `${number(nodes.length)} ${STATES[state].name}`),
      el("div", { className: "clip" }, hostsLink(model, hostsText(model, nodes))),
    ),
  );
};

const offlineText = (model, nodes) => {
  const offline = offlineCount(model, nodes);
  return offline > 0 ? `${number(offline)} of them offline, ` : "";
};

const reasonItem = (model, group, now) =>
  el(
    "li",
    {},
    badge(STATES[model.state(group.nodes[0])]),
    el(
      "div",
      {},
      el("strong", { className: "clip" }, group.reason),
      el("div", { className: "clip" }, hostsLink(model, hostsText(model, group.nodes))),
      el(
        "div",
        { className: "faint" },
        `${number(group.nodes.length)} drained, ${offlineText(model, group.nodes)}oldest ${duration(now - group.oldest)} ago`,
      ),
    ),
  );

/** Draws both lists. */
export const render = (element, model, events, now) => {
  const reasons = byReason(model).sort((a, b) => b.newest - a.newest);
  const items = [
    stateItem(model, OFFLINE),
    stateItem(model, STATE_TORPID),
    ...reasons.slice(0, MAX_REASONS).map((group) => reasonItem(model, group, now)),
  ].filter(Boolean);
  replace(
    element,
    el(
      "section",
      {},
      el("h2", {}, "Needs attention"),
      items.length > 0
        ? el("ul", { className: "attention" }, items)
        : el(
            "p",
            { className: "faint" },
            model.size > 0 ? "Nothing. All nodes are online and none is drained." : "There are no nodes.",
          ),
      reasons.length > MAX_REASONS
        ? el("p", {}, el("a", { href: "#/drains" }, `${number(reasons.length - MAX_REASONS)} more reasons`))
        : null,
    ),
    el(
      "section",
      {},
      el("div", { className: "section-head" }, el("h2", {}, "Latest events"), el("a", { href: "#/events" }, "All")),
      el(
        "ol",
        { className: "events" },
        events
          .slice(-MAX_EVENTS)
          .reverse()
          .map((event) => eventRow(model, event, now)),
      ),
    ),
  );
};
