// The state at a time of the past (resource.status-at): a slider and a time of day above the map. While it is open, all
// views except events and the system show that state instead of the present one.
import * as api from "./api.js";
import { byId, setText } from "./dom.js";
import { modelOf } from "./fold.js";
import { Model } from "./model.js";
import { duration, localInput, stamp } from "./time.js";

const SPANS = new Map([
  ["6 h", 21600],
  ["24 h", 86400],
  ["7 d", 604800],
  ["30 d", 2592000],
]);
const STEPS = 1000;

export class Past {
  /** handlers: choose(at) for a time that the user has chosen, undefined for now; changed() for another state. */
  constructor(handlers) {
    this.handlers = handlers;
    this.at = undefined;
    this.model = null;
    this.abort_ = null;
    this.wanted_ = undefined;
    this.failure = "";
    byId("past-slider").max = STEPS;
    byId("past-slider").addEventListener("input", () =>
      handlers.choose(Math.round(this.timeOf_(Number(byId("past-slider").value)))),
    );
    byId("past-time").addEventListener("change", () => handlers.choose(Date.parse(byId("past-time").value) / 1000));
    byId("past-span").addEventListener("change", () => this.draw_());
    byId("past-now").addEventListener("click", () => handlers.choose(undefined));
  }

  get span_() {
    return SPANS.get(byId("past-span").value) ?? SPANS.get("24 h");
  }

  timeOf_(value) {
    return Date.now() / 1000 - this.span_ * (1 - value / STEPS);
  }

  /** Opens at a time, or leaves the past. The partitions come from `present`, because the log does not have them. */
  open(at, present) {
    this.present_ = present;
    if (at === this.at) return;
    this.at = at;
    this.failure = "";
    if (at === undefined) {
      this.abort_?.abort();
      this.model = null;
      this.draw_();
      this.handlers.changed();
      return;
    }
    this.fitSpan_(at);
    this.draw_();
    this.read_();
  }

  // Extend the span: a link may lead further back than the slider.
  fitSpan_(at) {
    const age = Date.now() / 1000 - at;
    if (age > this.span_) byId("past-span").value = [...SPANS].find(([, seconds]) => seconds >= age)?.[0] ?? "30 d";
  }

  // Sends one request at a time: while the slider moves, the latest time is requested after the answer for the former
  // one.
  async read_() {
    if (this.abort_) return;
    while (this.at !== undefined && this.wanted_ !== this.at) {
      const at = this.at;
      this.wanted_ = at;
      this.abort_ = new AbortController();
      try {
        const status = await api.get("resource.status-at", { at }, this.abort_.signal);
        const model = modelOf(status);
        model.partitions = this.present_.partitions;
        if (this.at === undefined) break;
        this.model = model;
        this.failure = model.size === 0 ? "no nodes are on record then" : "";
      } catch (error) {
        if (error.name === "AbortError") {
          this.wanted_ = undefined;
          continue;
        }
        if (this.at === undefined) break;
        // Show an empty model: the present state must not stand for that time.
        this.model = new Model();
        this.failure = error.message;
      }
      this.draw_();
      if (this.at !== undefined) this.handlers.changed();
    }
    this.abort_ = null;
    this.wanted_ = undefined;
  }

  draw_() {
    const isOpen = this.at !== undefined;
    byId("past").hidden = !isOpen;
    byId("past-button").setAttribute("aria-pressed", String(isOpen));
    if (!isOpen) return;
    const age = Date.now() / 1000 - this.at;
    byId("past-slider").value = String(Math.round(STEPS * (1 - Math.min(1, Math.max(0, age / this.span_)))));
    byId("past-slider").setAttribute("aria-valuetext", stamp(this.at));
    if (document.activeElement !== byId("past-time")) byId("past-time").value = localInput(this.at);
    setText(byId("past-text"), this.failure || `${duration(age)} ago`);
    byId("past-text").classList.toggle("warning", this.failure !== "");
  }
}
