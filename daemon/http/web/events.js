// The list of events, newest first: the ones that the page has, or those of a longer time, filtered by name and by node
// or text.
import * as history from "./history.js";
import { el, number, replace, throttled } from "./dom.js";
import { NAMES, passes } from "./eventtext.js";
import { eventRow } from "./rows.js";

const SPANS = [
  ["recent", 0],
  ["1 h", 3600],
  ["24 h", 86400],
  ["7 d", 7 * 86400],
  ["all", Infinity],
];
const MAX_READ = 20000;
const PAGE = 200;

export class EventsView {
  /** `app` gives model, recent (events that the page has) and replaceParams(). */
  constructor(app, element) {
    this.app = app;
    this.element = element;
    this.filter = { names: new Set(), text: "" };
    this.span = 0;
    this.shown = PAGE;
    this.record = new history.Record(); // The events of a longer time.
    this.note = "";
    this.failed = false;
    this.list = el("ol", { className: "events", aria: { label: "Events, newest first" } });
    this.status = el("p", { className: "faint" });
    this.more = el("button", { type: "button", on: { click: () => this.showMore_() } }, "Show more");
    this.text = el("input", {
      type: "search",
      placeholder: "Node, reason, user, id…",
      aria: { label: "Filter of events" },
      on: { input: () => this.setParams_({ text: this.text.value }) },
    });
    this.chips = NAMES.map((name) =>
      el(
        "button",
        { type: "button", className: "chip", data: { name }, on: { click: () => this.toggle_(name) } },
        name,
      ),
    );
    this.spans = SPANS.map(([name]) =>
      el(
        "button",
        {
          type: "button",
          data: { span: name },
          on: { click: () => this.setParams_({ span: name === "recent" ? "" : name }) },
        },
        name,
      ),
    );
    this.drawSoon = throttled(() => this.draw(), 200);
    replace(
      element,
      el(
        "div",
        { className: "section-head" },
        el("h1", {}, "Events"),
        el("div", { className: "segmented", role: "group", aria: { label: "Time span" } }, this.spans),
      ),
      el(
        "div",
        { className: "filters" },
        this.text,
        el("div", { className: "chips", role: "group", aria: { label: "Names of events" } }, this.chips),
      ),
      this.status,
      this.list,
      this.more,
    );
  }

  setParams_(params) {
    this.app.replaceParams(params);
  }

  toggle_(name) {
    const names = new Set(this.filter.names);
    if (!names.delete(name)) names.add(name);
    this.setParams_({ names: [...names].join(",") });
  }

  showMore_() {
    this.shown += PAGE;
    this.draw();
  }

  /** Shows the filter of the address. */
  open({ names = "", text = "", span = "recent" }) {
    this.filter = { names: new Set(names.split(",").filter((name) => NAMES.includes(name))), text: text.trim() };
    if (document.activeElement !== this.text) this.text.value = text;
    this.shown = PAGE;
    const seconds = SPANS.find(([name]) => name === span)?.[1] ?? 0;
    if (seconds !== this.span) {
      this.span = seconds;
      this.read_();
    }
    this.draw();
  }

  /** Reads the longer time again, because events may be missing. */
  async read_() {
    this.record.stop();
    this.note = "";
    if (this.span === 0) return;
    this.note = "loading…";
    try {
      const since = this.span === Infinity ? undefined : Date.now() / 1000 - this.span;
      const read = await this.record.read({ since }, MAX_READ);
      if (!read) return;
      this.note = read.complete ? "" : `the newest ${number(MAX_READ)} of this time`;
      this.failed = false;
    } catch (error) {
      this.failed = true;
      this.note = error.message;
    }
    this.draw();
  }

  restart() {
    this.read_();
    this.drawSoon();
  }

  /** Reads the longer time again if that has failed. */
  retry() {
    if (this.failed) this.restart();
  }

  /** Adds new events of the journal. */
  take(events) {
    this.record.take(events, MAX_READ);
    if (!this.element.hidden) this.drawSoon();
  }

  draw() {
    const { model } = this.app;
    const all = this.record.events ?? this.app.recent;
    const rows = [];
    let matching = 0;
    const now = Date.now() / 1000;
    for (let i = all.length - 1; i >= 0; --i) {
      if (!passes(model, all[i], this.filter)) continue;
      if (++matching <= this.shown) rows.push(eventRow(model, all[i], now));
    }
    for (const chip of this.chips) chip.setAttribute("aria-pressed", String(this.filter.names.has(chip.dataset.name)));
    for (const [i, button] of this.spans.entries())
      button.setAttribute("aria-pressed", String(SPANS[i][1] === this.span));
    const count = `${number(matching)} ${matching === 1 ? "event" : "events"}`;
    replace(this.status, this.note ? `${count} · ${this.note}` : count);
    replace(this.list, rows);
    this.more.hidden = matching <= this.shown;
  }
}
