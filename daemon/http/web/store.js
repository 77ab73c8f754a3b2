// The state of the page: the model, the newest events, and the connections that keep both up to date. Data of the
// daemon is folded into the model (fold.js); this file sends the questions that the model needs.
import * as api from "./api.js";
import * as history from "./history.js";
import { fold, wants } from "./fold.js";
import { Live } from "./live.js";
import { Model } from "./model.js";

const ENOSYS = 38; // The daemon does not serve the topic.
const RECENT = 500; // Number of events to show at the start.
const MAX_RECENT = 2000;
const RELOAD_MS = 5000; // Minimum time between two questions for the status.
const RETRY_MS = 2000;
const LONGEST_RETRY_MS = 60000;
const NAP_MS = 1000;
const MARGIN_S = 60;
// Time and number of kept events other than those of the ledger, which are many if a scheduler is busy.
const NOTABLE_S = 7200;
const MAX_NOTABLE = 100;
const LEDGER = new Set(["alloc", "alloc-update", "free"]);
// Interval of questions for states without events: waiting targets of a partition, and unconfirmed health.
const REFRESH_MS = 300000;

const pause = (ms) => new Promise((done) => setTimeout(done, ms));

export class Store {
  /**
   * handlers: loaded() for another model, changed(nodes) for nodes with another state or for other allocations, layout()
   * for other properties, events(list) for new events, restarted() if events were missed, live(state), failed(error) if
   * no status could be loaded.
   */
  constructor(handlers) {
    this.handlers = handlers;
    this.model = new Model();
    this.recent = [];
    this.notable = [];
    this.isLoaded = false;
    this.failure = ""; // Why the last question has failed; empty if none has.
    this.abort_ = new AbortController(); // Aborts all questions since the last start.
    this.askedAt_ = { status: -Infinity, allocations: -Infinity };
    this.failures_ = { status: 0, allocations: 0 };
    this.live = new Live({
      batch: (batch) => this.take_({ batch }),
      caughtUp: () => this.caughtUp_(),
      lost: () => this.restart(),
      changed: (state) => handlers.live(state),
    });
    setInterval(() => !document.hidden && this.take_({ aged: true }), REFRESH_MS);
  }

  /** Starts again: loads the status, and follows the journal from there. */
  async restart() {
    this.abort_.abort();
    clearTimeout(this.startTimer_);
    const { signal } = (this.abort_ = new AbortController());
    this.take_({ lost: true });
    let last;
    try {
      // Request the status after the number is known, so that it has all events up to it.
      last = await history.lastNumber(signal);
      this.take_({ batch: { events: [], last } });
      await this.ask_("status", signal);
    } catch (error) {
      if (signal.aborted) return;
      if (error.status !== 401) this.startTimer_ = setTimeout(() => this.restart(), RETRY_MS);
      this.handlers.failed(error);
      return;
    }
    if (signal.aborted) return;
    this.recent = [];
    this.failure = "";
    this.failures_ = { status: 0, allocations: 0 };
    this.tell_("restarted");
    // The log of a Flux instance has no numbers: fold all events since shortly before.
    this.live.start(
      last === undefined ? { since: Date.now() / 1000 - MARGIN_S } : { after: Math.max(0, last - RECENT) },
    );
  }

  async caughtUp_() {
    this.pursue_();
    const since = Date.now() / 1000 - NOTABLE_S;
    const past = await history
      .read({ since, allocations: undefined }, MAX_NOTABLE, this.abort_.signal)
      .catch(() => null);
    if (!past) return;
    this.notable = history.join(past.events, this.notable).slice(-MAX_NOTABLE);
    this.tell_("events", []);
  }

  take_(said) {
    const { used } = this.model;
    const change = fold(this.model, said);
    const isOther = change.model !== this.model;
    this.model = change.model;
    this.isLoaded ||= isOther;
    if (said.batch) {
      const { events } = said.batch;
      this.recent.push(...events);
      if (this.recent.length > MAX_RECENT) this.recent.splice(0, this.recent.length - RECENT);
      const notable = change.events.filter((event) => !LEDGER.has(event.name));
      this.notable = [...this.notable, ...notable].slice(-MAX_NOTABLE);
      if (events.length > 0) this.tell_("events", change.events);
    }
    if (isOther) this.tell_("loaded");
    if (change.layout) this.tell_("layout");
    if (change.nodes.length > 0 || (!isOther && this.model.used !== used)) this.tell_("changed", [...new Set(change.nodes)]);
    this.pursue_();
  }

  // Calls a handler. A view that fails affects neither the model nor other views.
  tell_(name, ...said) {
    try {
      this.handlers[name](...said);
    } catch (error) {
      reportError(error);
    }
  }

  // Sends the questions that the model needs, one at a time.
  async pursue_() {
    const { signal } = this.abort_;
    if (this.pursuing_ === signal) return;
    this.pursuing_ = signal;
    for (let topic; (topic = wants(this.model)) && this.live.state.live;) {
      const wait = this.waitOf_(topic);
      // Wait in short steps, because another question may be needed soon.
      if (wait > 0) await pause(Math.min(wait, NAP_MS));
      else await this.tryToAsk_(topic, signal);
      if (signal.aborted) return;
    }
    this.pursuing_ = null;
  }

  waitOf_(topic) {
    const failures = this.failures_[topic];
    const retry = failures > 0 ? Math.min(RETRY_MS * 2 ** failures, LONGEST_RETRY_MS) : 0;
    return this.askedAt_[topic] + Math.max(retry, topic === "status" ? RELOAD_MS : 0) - performance.now();
  }

  async tryToAsk_(topic, signal) {
    try {
      await this.ask_(topic, signal);
      this.failures_[topic] = 0;
      if (topic === "status") this.failure = "";
    } catch (error) {
      // A Flux instance has no ledger, so there is nothing to wait for.
      if (topic === "allocations" && error.errno === ENOSYS) return this.take_({ page: { allocations: [] } });
      ++this.failures_[topic];
      if (topic === "status") this.failure = error.message;
    }
  }

  async ask_(topic, signal) {
    this.askedAt_[topic] = performance.now();
    this.take_({ asked: topic });
    if (topic === "status") {
      this.take_({ status: await api.get("resource.status", {}, signal) });
      return;
    }
    let after;
    do {
      const page = await api.get("resource.allocations", { after }, signal);
      this.take_({ page });
      after = page.next;
    } while (after !== undefined && wants(this.model) === topic);
  }
}
