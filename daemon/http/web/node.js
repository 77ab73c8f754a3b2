// The page of one node: its state with the time of its beginning, drain, hardware, place, allocations, its timeline and
// last events.
import * as api from "./api.js";
import * as history from "./history.js";
import * as hostlist from "./hostlist.js";
import * as idset from "./idset.js";
import * as paint from "./paint.js";
import * as timeline from "./timeline.js";
import { badge, byId, el, replace } from "./dom.js";
import { ranksOf } from "./eventtext.js";
import { actorText, nameText } from "./model.js";
import { format } from "./router.js";
import { hostTarget } from "./shell.js";
import { eventRow, field, searchLink } from "./rows.js";
import { ALLOCATED, STATES, STATE_ALLOCATED, describe } from "./states.js";
import { duration, stamp } from "./time.js";

const DAY = 86400;
const SPANS = [
  ["1 h", 3600],
  ["24 h", DAY],
  ["7 d", 7 * DAY],
  ["30 d", 30 * DAY],
];
const LONGEST = SPANS[SPANS.length - 1][1];
const MAX_EVENTS = 5000;
const SHOWN_EVENTS = 40;
const STRIP_HEIGHT = 34;

// Whether the journal returns an event for a node as its target.
const isAbout = (event, rank, host) => {
  if (event.name === "alloc-update" || (event.name === "free" && event.context?.idset === undefined))
    return hostlist.parse(event.context?.nodelist ?? "").includes(host);
  return idset.has(ranksOf(event), rank);
};

export class NodePanel {
  /** `app` gives model, now(), isPast and close(). */
  constructor(app, element) {
    this.app = app;
    this.element = element;
    this.host = null;
    this.span = DAY;
    this.record = new history.Record();
    this.holder = undefined; // The scheduler that holds the node; null for none, undefined if that is not known.
    this.fault = ""; // The defect of the node in the report of its agent.
    this.failure = "";
    this.loading = false;
  }

  get events() {
    return this.record.events ?? [];
  }

  /** Shows a host; reads its history. */
  open(host) {
    if (this.host === host) return;
    this.host = host;
    this.restart();
    byId("side").scrollTop = 0;
  }

  close() {
    this.record.stop();
    this.host = null;
    replace(this.element);
  }

  /** Reads the history again, because events may be missing. */
  restart() {
    this.holder = undefined;
    this.fault = "";
    this.refresh();
    return this.read_();
  }

  /** Reads the history if that has failed, for instance for a node that did not exist yet. */
  retry() {
    if (this.host !== null && this.failure && !this.loading) this.read_();
  }

  async read_() {
    const { host } = this;
    if (host === null) return;
    this.failure = "";
    this.loading = true;
    this.render();
    try {
      if (!(await this.record.read({ targets: host, since: Date.now() / 1000 - LONGEST }, MAX_EVENTS))) return;
    } catch (error) {
      this.failure = error.message;
    }
    this.loading = false;
    this.render();
  }

  /** Asks which scheduler holds the node, because there are no events about it. */
  async refresh() {
    const { host } = this;
    if (host === null) return;
    this.asking_?.abort();
    this.asking_ = new AbortController();
    const peers = await api.get("resource.peers", { targets: host }, this.asking_.signal).catch(() => null);
    const index = this.app.model.find(host);
    if (this.host !== host || index === undefined || !peers) return;
    const rank = this.app.model.ranks[index];
    const holder = peers.holders.find(({ targets }) => idset.has(idset.parse(targets), rank)) ?? null;
    const fault = peers.unfit?.[rank] ?? "";
    if (JSON.stringify(holder) === JSON.stringify(this.holder) && fault === this.fault) return;
    this.holder = holder;
    this.fault = fault;
    this.render();
  }

  /** Adds new events of the node to its history. They have the ranks of a model. */
  take(events, model) {
    const index = this.host === null ? undefined : model.find(this.host);
    if (index === undefined) return;
    const own = events.filter((event) => isAbout(event, model.ranks[index], this.host));
    if (own.length === 0) return;
    this.record.take(own, MAX_EVENTS);
    this.render();
  }

  render() {
    if (this.host === null) return;
    const { model } = this.app;
    const index = model.find(this.host);
    const close = el(
      "button",
      {
        className: "icon-button",
        title: "Close (Esc)",
        on: { click: () => this.app.close() },
        aria: { label: "Close" },
      },
      "✕",
    );
    if (index === undefined) {
      replace(
        this.element,
        el("header", { className: "node-head" }, el("h2", {}, this.host), close),
        el(
          "p",
          {},
          model.shrunk.includes(this.host) ? "shrunk: removed from the inventory until it is unshrunk" : "No such node.",
        ),
      );
      return;
    }
    const now = this.app.now();
    const state = STATES[model.state(index)];
    const strip = this.strip_(index, now, this.span);
    replace(
      this.element,
      el("header", { className: "node-head" }, el("h2", { tabIndex: -1 }, this.host), close),
      el(
        "p",
        { className: "node-state" },
        badge(state),
        el("strong", {}, describe(model.flags[index])),
        this.since_(index, now),
      ),
      el("dl", { className: "fields" }, ...this.fields_(index, now)),
      this.command_(index),
      this.timeline_(strip, now),
      this.eventList_(now),
    );
    this.drawStrip_(strip, now);
  }

  strip_(index, now, span) {
    return timeline.pieces(
      this.events.filter((event) => event.timestamp <= now),
      {
        rank: this.app.model.ranks[index],
        present: this.app.model.flags[index],
        from: now - span,
        to: now,
      },
    );
  }

  // Returns the beginning of the node's state: from the events of the longest time, or else from its drain.
  since_(index, now) {
    const drain = this.app.model.drains.get(index);
    const strip = this.strip_(index, now, LONGEST);
    const from = strip.length > 1 ? strip[strip.length - 1].from : drain?.timestamp;
    if (!this.record.events && !drain) return "";
    return el(
      "span",
      { className: "faint" },
      from ? ` since ${stamp(from)} (${duration(now - from)})` : ` for more than ${duration(LONGEST)}`,
    );
  }

  fields_(index, now) {
    const { model } = this.app;
    const drain = model.drains.get(index);
    const scheduled = model.scheduled.get(index) ?? [];
    const partition = model.partitionOf(index);
    const hardware = model.hardware[model.hardwareOf[index]];
    return [
      ...(drain
        ? [
            ...field("Reason", drain.reason || el("span", { className: "faint" }, "none given")),
            ...field("Drained", `${stamp(drain.timestamp)} (${duration(now - drain.timestamp)} ago)`),
            ...field("By", actorText(drain.by)),
            ...field("Until", drain.until ? stamp(drain.until) : ""),
            ...field("Ticket", drain.ticket),
          ]
        : []),
      ...scheduled.flatMap(({ from, until, reason, by, ticket }) =>
        field(
          "Scheduled",
          `drain from ${stamp(from)}${until ? ` until ${stamp(until)}` : ""}` +
            `${reason ? `: ${reason}` : ""}${by ? ` (${actorText(by)})` : ""}${ticket ? `, ticket ${ticket}` : ""}`,
        ),
      ),
      ...field("Fault", this.app.isPast || drain?.reason === this.fault ? "" : this.fault),
      ...field("Rank", String(model.ranks[index])),
      ...field("Hardware", hardware?.text),
      ...field(
        "Properties",
        model
          .propertiesOf(index)
          .map((name) =>
            el("a", { className: "chip", href: format({ view: "map", params: { q: `prop:${name}` } }) }, name),
          ),
      ),
      ...field("Partition", partition ? searchLink(`part:${partition}`, partition) : ""),
      ...field(
        "Scheduler",
        this.app.isPast
          ? ""
          : this.holder
            ? `${actorText(this.holder.by) || "yes"}, since ${stamp(this.holder.since)}`
            : this.holder === undefined
              ? "…"
              : "none",
      ),
      ...field("Allocations", this.allocationItems_(index, now)),
    ];
  }

  allocationItems_(index, now) {
    const { model } = this.app;
    if (this.app.isPast) return model.flags[index] & ALLOCATED ? ["see the events"] : ["none"];
    if (!model.ledgerKnown) return [model.flags[index] & ALLOCATED ? "…" : "none"];
    const rank = model.ranks[index];
    const own = [...model.allocations.values()].filter(({ ranks }) => idset.has(ranks, rank));
    if (own.length === 0) return ["none"];
    return own.slice(0, 50).map((allocation) => {
      const here = allocation.hardware.find((group) => idset.has(group.ranks, rank));
      const isExpired = allocation.expiration && allocation.expiration <= now;
      return el(
        "div",
        { className: "allocation" },
        el("code", {}, nameText(allocation)),
        ` ${here?.text ?? ""}`,
        allocation.expiration
          ? el(
              "span",
              { className: isExpired ? "warning" : "faint" },
              ` ${isExpired ? "expired" : "until"} ${stamp(allocation.expiration)}`,
            )
          : null,
        allocation.note ? el("div", { className: "note" }, allocation.note) : null,
      );
    });
  }

  // Returns the command that changes the node, because the page itself changes nothing.
  command_(index) {
    if (this.app.isPast) return null;
    const isDrained = this.app.model.drains.has(index);
    const host = hostTarget(this.host);
    const text = isDrained ? `resourcectl undrain ${host}` : `resourcectl drain ${host} REASON`;
    return el(
      "p",
      { className: "command" },
      el("span", { className: "faint" }, isDrained ? "To return it:" : "To drain it:"),
      " ",
      el("code", {}, text),
    );
  }

  timeline_(strip, now) {
    const buttons = SPANS.map(([name, span]) =>
      el(
        "button",
        {
          type: "button",
          aria: { pressed: String(span === this.span) },
          on: { click: () => this.setSpan_(span) },
        },
        name,
      ),
    );
    const text = [...timeline.totals(strip)]
      .sort((a, b) => b[1] - a[1])
      .map(([state, seconds]) => `${STATES[state]?.label ?? "no record"} ${duration(seconds)}`)
      .join(", ");
    return el(
      "section",
      {},
      el(
        "div",
        { className: "section-head" },
        el("h3", {}, "Timeline"),
        el("div", { className: "segmented", role: "group", aria: { label: "Time span" } }, buttons),
      ),
      el("canvas", { className: "strip", id: "strip", height: STRIP_HEIGHT, aria: { hidden: "true" } }),
      el(
        "div",
        { className: "strip-ends faint" },
        el("span", {}, stamp(now - this.span)),
        el("span", {}, this.app.isPast ? stamp(now) : "now"),
      ),
      el("p", { className: "faint" }, text),
    );
  }

  setSpan_(span) {
    this.span = span;
    this.render();
  }

  drawStrip_(strip, now) {
    const canvas = byId("strip");
    const ratio = window.devicePixelRatio || 1;
    canvas.width = canvas.clientWidth * ratio;
    canvas.height = STRIP_HEIGHT * ratio;
    const context = canvas.getContext("2d");
    const colours = paint.palette();
    const place = (time) => ((time - (now - this.span)) / this.span) * canvas.width;
    for (const { from, to, state } of strip) {
      if (state === timeline.UNKNOWN) continue;
      context.fillStyle = colours.states[state].fill;
      const left = Math.floor(place(from));
      const width = Math.max(2, Math.ceil(place(to)) - left);
      // Draw problems higher than ordinary states, so that the strip can be read without its colours.
      const top = state > STATE_ALLOCATED ? 0 : canvas.height * (state === STATE_ALLOCATED ? 0.35 : 0.6);
      context.fillRect(left, top, width, canvas.height - top);
      const { glyph } = STATES[state];
      if (!glyph || width < 14 * ratio) continue;
      context.fillStyle = colours.states[state].ink;
      context.font = `${11 * ratio}px system-ui, sans-serif`;
      context.textBaseline = "middle";
      context.fillText(glyph, left + 4 * ratio, (top + canvas.height) / 2);
    }
  }

  eventList_(now) {
    const newest = this.events
      .filter((event) => event.timestamp <= now)
      .slice(-SHOWN_EVENTS)
      .reverse();
    const body =
      newest.length > 0
        ? el(
            "ol",
            { className: "events" },
            newest.map((event) => eventRow(this.app.model, event, now)),
          )
        : el("p", { className: "faint" }, this.loading ? "Loading…" : this.failure || "No events in the last 30 days.");
    return el(
      "section",
      {},
      el(
        "div",
        { className: "section-head" },
        el("h3", {}, "Events"),
        el("a", { href: format({ view: "events", params: { text: this.host } }) }, "All"),
      ),
      body,
    );
  }
}
