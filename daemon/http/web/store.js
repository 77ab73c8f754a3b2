// The state of the page: the model, the newest events, and the connection that keeps both up to date. A status is loaded
// at the start and when events cannot tell the state; the events after it are folded into it.
import * as api from "./api.js";
import * as history from "./history.js";
import { Live } from "./live.js";
import { Model } from "./model.js";

const RECENT = 500; // Events to show at the start.
const MAX_RECENT = 2000;
const RELOAD_MS = 5000; // The least time between two loads of the status.
const RETRY_MS = 2000;
const MARGIN_S = 60;
const MAX_LEDGER_PAGES = 200;
// Events other than those of the ledger, which are many where a scheduler is busy.
const NOTABLE_S = 7200;
const MAX_NOTABLE = 100;
const LEDGER = new Set(["alloc", "free"]);
// A few things have no event: what waits in a partition, and which health is not confirmed.
const REFRESH_MS = 300000;

export class Store {
  /**
   * handlers: loaded() for a new status, changed(nodes) for nodes with another state, layout() for other properties,
   * events(list) for new events, live(state), failed(error) if no status could be loaded.
   */
  constructor(handlers) {
    this.handlers = handlers;
    this.model = new Model();
    this.recent = [];
    this.notable = [];
    this.isLoaded = false;
    this.meanwhile_ = null;
    this.reloadTimer_ = 0;
    this.loadedAt_ = -Infinity;
    this.live = new Live({
      batch: (batch) => this.batch_(batch),
      caughtUp: () => this.caughtUp_(),
      gap: () => this.restart(),
      changed: (state) => handlers.live(state),
    });
  }

  /** Loads the status, and follows the journal from there. */
  async restart() {
    clearTimeout(this.startTimer_);
    try {
      // The status is asked for after the number is known, so it has all events up to it.
      this.known_ = await history.lastNumber();
      await this.load_();
    } catch (error) {
      if (error.status !== 401) this.startTimer_ = setTimeout(() => this.restart(), RETRY_MS);
      this.handlers.failed(error);
      return;
    }
    this.recent = [];
    // The log of a Flux instance has no numbers: there all events since shortly before are folded.
    this.live.start(
      this.known_ === undefined
        ? { since: Date.now() / 1000 - MARGIN_S }
        : { after: Math.max(0, this.known_ - RECENT) },
    );
  }

  async load_() {
    // Events that come meanwhile may be newer than the status, so they are folded into it again.
    this.meanwhile_ = [];
    const status = await api.get("resource.status");
    this.loadedAt_ = performance.now();
    this.model.load(status);
    for (const event of this.meanwhile_) this.model.apply(event);
    this.meanwhile_ = null;
    this.isLoaded = true;
    this.handlers.loaded();
  }

  async caughtUp_() {
    this.learn_();
    clearInterval(this.refresh_);
    this.refresh_ = setInterval(() => !document.hidden && this.live.state.live && this.reloadSoon_(), REFRESH_MS);
    const past = await history
      .read({ since: Date.now() / 1000 - NOTABLE_S, allocations: undefined }, MAX_NOTABLE)
      .catch(() => null);
    if (!past) return;
    this.notable = past.events;
    this.handlers.events([]);
  }

  // Loads the status again, with at least RELOAD_MS between two loads, however many events ask for it.
  reloadSoon_() {
    if (this.reloadTimer_) return;
    const wait = Math.max(0, RELOAD_MS - (performance.now() - this.loadedAt_));
    this.reloadTimer_ = setTimeout(async () => {
      try {
        await this.load_();
        this.reloadTimer_ = 0;
        this.learn_();
      } catch {
        this.reloadTimer_ = 0;
        this.reloadSoon_();
      }
    }, wait);
  }

  batch_({ events, last }) {
    if (events.length === 0) return;
    this.recent.push(...events);
    this.notable = [...this.notable, ...events.filter((event) => !LEDGER.has(event.name))].slice(-MAX_NOTABLE);
    if (this.recent.length > MAX_RECENT) this.recent.splice(0, this.recent.length - RECENT);
    // The status has events up to the known one.
    if (!(last <= this.known_)) this.fold_(events);
    this.handlers.events(events);
  }

  fold_(events) {
    const nodes = new Set();
    let layout = false;
    this.meanwhile_?.push(...events);
    for (const event of events) {
      const change = this.model.apply(event);
      for (const index of change.nodes) nodes.add(index);
      layout ||= change.layout;
      if (change.stale) this.reloadSoon_();
      if (event.name === "free" && this.learning_) this.learning_.note(event.context ?? {});
    }
    if (layout) this.handlers.layout();
    if (nodes.size > 0) this.handlers.changed([...nodes]);
  }

  // Reads the present allocations page by page, so that the end of one tells which nodes are free.
  async learn_() {
    const { model } = this;
    if (model.ledgerKnown || this.learning_) return;
    const learning = new Learning();
    this.learning_ = learning;
    try {
      let after;
      for (let page = 0; page < MAX_LEDGER_PAGES; ++page) {
        const { allocations, next } = await api.get("resource.allocations", { after });
        model.learn(allocations, learning.gone);
        if (next === undefined) {
          model.ledgerKnown = !learning.isTorn;
          break;
        }
        after = next;
      }
    } catch {
      // Without the ledger the status is loaded again when something is freed.
    } finally {
      this.learning_ = null;
    }
  }
}

// What was freed while the allocations are read: pages may still have it.
class Learning {
  constructor() {
    this.gone = new Set();
    this.isTorn = false; // A part of an allocation was freed, and a page may have the whole of it.
  }

  note({ ids = [], idset }) {
    for (const id of ids) this.gone.add(id);
    if (idset !== undefined) this.isTorn = true;
  }
}
