// One node: its state and since when, drain, hardware, place, allocations, its timeline and last events.
import * as api from "./api.js";
import * as history from "./history.js";
import * as idset from "./idset.js";
import * as paint from "./paint.js";
import * as rset from "./rset.js";
import * as timeline from "./timeline.js";
import { badge, byId, el, replace } from "./dom.js";
import { ranksOf } from "./eventtext.js";
import { actorText } from "./model.js";
import { format } from "./router.js";
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

export class NodePanel {
  /** `app` gives model, now(), isPast and close(). */
  constructor(app, element) {
    this.app = app;
    this.element = element;
    this.host = null;
    this.span = DAY;
    this.events = [];
    this.allocations = null;
    this.abort_ = null;
  }

  /** Shows a host; reads its history and allocations. */
  async open(host) {
    if (this.host === host) return;
    this.host = host;
    this.events = [];
    this.allocations = null;
    this.holder = null;
    this.failure = "";
    this.loading = true;
    this.render();
    byId("side").scrollTop = 0;
    await this.read_();
  }

  close() {
    this.abort_?.abort();
    this.host = null;
    replace(this.element);
  }

  async read_() {
    this.abort_?.abort();
    const abort = new AbortController();
    this.abort_ = abort;
    const index = this.app.model.find(this.host);
    if (index === undefined) return;
    const targets = this.host;
    const since = Date.now() / 1000 - LONGEST;
    const parts = await Promise.allSettled([
      history.read({ targets, since }, MAX_EVENTS, abort.signal),
      api.get("resource.allocations", { targets }, abort.signal),
      api.get("resource.peers", {}, abort.signal),
    ]);
    if (abort.signal.aborted) return;
    const [past, allocations, peers] = parts.map((part) => part.value);
    this.loading = false;
    if (past) this.events = past.events;
    this.failure = parts.find((part) => part.reason && part.reason.errno !== 22)?.reason.message ?? "";
    this.allocations = allocations?.allocations ?? [];
    this.holder =
      peers?.holders?.find((holder) => idset.has(idset.parse(holder.targets), this.app.model.ranks[index])) ?? null;
    this.render();
  }

  /** Takes new events of the journal: those of the node join its history. */
  take(events) {
    const index = this.host === null ? undefined : this.app.model.find(this.host);
    if (index === undefined || this.loading) return;
    const rank = this.app.model.ranks[index];
    const own = events.filter(
      (event) => idset.has(ranksOf(event), rank) || (event.name === "free" && this.frees_(event)),
    );
    if (own.length === 0) return;
    this.events.push(...own);
    for (const event of own) this.follow_(event, rank);
    this.render();
  }

  frees_(event) {
    return (event.context?.ids ?? []).some((id) => this.allocations?.some((a) => a.id === id));
  }

  follow_(event, rank) {
    if (!this.allocations) return;
    if (event.name === "alloc") {
      const here = event.context.allocations.filter((a) => idset.has(rset.parse(a.R).ranks, rank));
      this.allocations.push(...here.filter((a) => !this.allocations.some((b) => b.id === a.id)));
    }
    if (
      event.name === "free" &&
      (event.context.idset === undefined || idset.has(idset.parse(event.context.idset), rank))
    ) {
      this.allocations = this.allocations.filter((a) => !event.context.ids.includes(a.id));
    }
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
        el("p", {}, "No such node."),
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

  // Since when the node is in its state: from the events of the longest time, or else from its drain.
  since_(index, now) {
    const drain = this.app.model.drains.get(index);
    const strip = this.strip_(index, now, LONGEST);
    const from = strip.length > 1 ? strip[strip.length - 1].from : drain?.timestamp;
    if (this.loading && !drain) return "";
    return el(
      "span",
      { className: "faint" },
      from ? ` since ${stamp(from)} (${duration(now - from)})` : ` for more than ${duration(LONGEST)}`,
    );
  }

  fields_(index, now) {
    const { model } = this.app;
    const drain = model.drains.get(index);
    const scheduled = model.scheduled.get(index);
    const partition = model.partitionOf(index);
    const hardware = model.hardware[model.hardwareOf[index]];
    return [
      ...(drain
        ? [
            ...field("Reason", drain.reason || el("span", { className: "faint" }, "none given")),
            ...field("Drained", `${stamp(drain.timestamp)} (${duration(now - drain.timestamp)} ago)`),
            ...field("By", actorText(drain.by)),
            ...field("Until", drain.until ? stamp(drain.until) : ""),
          ]
        : []),
      ...(scheduled
        ? field(
            "Scheduled",
            `drain from ${stamp(scheduled.from)}${scheduled.until ? ` until ${stamp(scheduled.until)}` : ""}` +
              `${scheduled.reason ? `: ${scheduled.reason}` : ""}${scheduled.by ? ` (${actorText(scheduled.by)})` : ""}`,
          )
        : []),
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
            : this.loading
              ? "…"
              : "none",
      ),
      ...field("Allocations", this.allocationItems_(index, now)),
    ];
  }

  allocationItems_(index, now) {
    if (this.app.isPast) return this.app.model.flags[index] & ALLOCATED ? ["see the events"] : ["none"];
    if (this.allocations === null) return ["…"];
    if (this.allocations.length === 0) return ["none"];
    const rank = this.app.model.ranks[index];
    return this.allocations.slice(0, 50).map((allocation) => {
      const here = rset.parse(allocation.R).hardware.find((group) => idset.has(group.ranks, rank));
      const isExpired = allocation.expiration && allocation.expiration <= now;
      return el(
        "div",
        { className: "allocation" },
        el("code", {}, allocation.id),
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

  // The page changes nothing, so it tells the command that does.
  command_(index) {
    if (this.app.isPast) return null;
    const isDrained = this.app.model.drains.has(index);
    const text = isDrained ? `resourcectl undrain ${this.host}` : `resourcectl drain ${this.host} REASON`;
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
      .map(([state, seconds]) => `${STATES[state]?.name ?? "no record"} ${duration(seconds)}`)
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
      // Problems are higher than ordinary states, so the strip can be read without its colours.
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
