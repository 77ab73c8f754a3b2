// Parts of lists that several views have: lines of events, and links to nodes.
import { el } from "./dom.js";
import * as eventtext from "./eventtext.js";
import { format } from "./router.js";
import { shortStamp, stamp } from "./time.js";

/** Makes a link to the page of a node. */
export const nodeLink = (host) =>
  el("a", { href: format({ view: "node", argument: host }), className: "node-link" }, host);

/** Makes a link to the map with the nodes of a search. */
export const searchLink = (query, text) => el("a", { href: format({ view: "map", params: { q: query } }) }, text);

/** Makes a link of hosts: to the node if it is one, otherwise to a search for them. */
export const hostsLink = (model, text) => {
  if (model.find(text) !== undefined) return nodeLink(text);
  return /^[!-~]{1,500}$/.test(text) ? searchLink(`host:${text}`, text) : el("span", {}, text);
};

// Maximum length of a text in a line; longer ones are cut off.
const MAX_LINE = 300;
const cut = (text) => (text.length > MAX_LINE ? `${text.slice(0, MAX_LINE)}…` : text);

/** Makes a line of a list of events. */
export const eventRow = (model, event, now) =>
  el(
    "li",
    { className: `event event-${event.name}` },
    el(
      "time",
      { dateTime: new Date(event.timestamp * 1000).toISOString(), title: stamp(event.timestamp) },
      shortStamp(event.timestamp, now),
    ),
    el("span", { className: "event-name" }, event.name),
    el("span", { className: "event-targets" }, hostsLink(model, cut(eventtext.targetsOf(model, event)))),
    el("span", { className: "event-detail" }, cut(eventtext.detailOf(event))),
    el("span", { className: "event-by" }, eventtext.actorOf(event)),
  );

/** Makes a term and its description in a description list; nothing if the content is empty. */
export const field = (name, ...content) => {
  const shown = content.flat().filter((part) => part !== null && part !== undefined && part !== "");
  return shown.length > 0 ? [el("dt", {}, name), el("dd", {}, ...shown)] : [];
};
