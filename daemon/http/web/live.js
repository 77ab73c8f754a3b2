// The connection that keeps the page live: one journal stream, which continues at the same position after any failure.
// The page always shows `state`, so that an old state is never taken for the present one.
import * as api from "./api.js";
import * as sse from "./sse.js";

// Time without data after which the connection counts as lost; the daemon sends a comment every 10 s.
const SILENCE_MS = 15000;
// Interval at which a connected daemon is asked whether it lags.
const TOUCH_MS = 8000;
const RETRY_MS = [500, 1000, 2000, 4000, 5000];
// Time after which a hidden tab closes its connection: browsers allow six to a daemon over all tabs, and the tab that is
// looked at needs one.
const HIDDEN_MS = 2000;
// The errno of a daemon that lacks the event after which the page continues. It may never get it, if its log was
// created again.
const EHOSTUNREACH = 113;
const REFUSALS = 5;
const PAUSED = "paused while hidden";

export class Live {
  /**
   * handlers: batch({events, last, R}) for each response of the journal, caughtUp() after the history, lost() if there is
   * no position to continue from, changed() for a new `state`.
   */
  constructor(handlers) {
    this.handlers = handlers;
    this.state = { live: false, text: "connecting", heard: 0 };
    this.position = {};
    this.failures = 0;
    this.abort_ = null;
    this.touched_ = 0;
    this.timer_ = 0;
    this.watch_ = 0;
    this.hidden_ = 0;
    window.addEventListener("online", () => this.retryNow());
    document.addEventListener("visibilitychange", () => this.visibility_());
    // Close the connection of a page that the browser keeps for Back.
    window.addEventListener("pagehide", () => this.stop(PAUSED));
    window.addEventListener("pageshow", (event) => event.persisted && this.resume_());
  }

  /** Starts again: after the event of this number, or since this time. */
  start(position) {
    this.position = position;
    this.state.heard = Date.now();
    this.failures = 0;
    this.connect_();
  }

  retryNow() {
    if (!this.state.live && this.timer_) this.connect_();
  }

  /** Ends the connection, without new attempts. */
  stop(text) {
    clearTimeout(this.timer_);
    clearTimeout(this.watch_);
    this.timer_ = 0;
    this.abort_?.abort();
    this.abort_ = null;
    this.set_(false, text);
  }

  set_(live, text) {
    if (this.state.live === live && this.state.text === text) return;
    this.state = { live, text, heard: this.state.heard };
    this.handlers.changed(this.state);
  }

  visibility_() {
    clearTimeout(this.hidden_);
    if (document.hidden) this.hidden_ = setTimeout(() => this.stop(PAUSED), HIDDEN_MS);
    else this.resume_();
  }

  resume_() {
    if (this.state.text === PAUSED) this.connect_();
  }

  listen_(abort) {
    clearTimeout(this.watch_);
    this.watch_ = setTimeout(() => {
      if (abort !== this.abort_) return;
      this.failures = Math.max(this.failures, 1);
      this.fail_(abort, "the daemon is silent");
    }, SILENCE_MS);
  }

  fail_(abort, text) {
    if (abort !== this.abort_) return; // A later connection has replaced this one.
    this.stop(text);
    // Use a random pause, so that pages that lost the same daemon do not reconnect at the same moment.
    const wait = RETRY_MS[Math.min(this.failures++, RETRY_MS.length - 1)] * (0.75 + Math.random() / 2);
    // Without a number there is no position to continue from.
    this.timer_ = setTimeout(() => (this.position.after === undefined ? this.handlers.lost() : this.connect_()), wait);
  }

  /** Asks for the state of the daemon: a standby without etcd keeps its journal open, but gets no changes. */
  async touch_(abort) {
    this.touched_ = Date.now();
    try {
      await api.get("resource.ready", {}, abort.signal);
    } catch (error) {
      if (error instanceof api.ApiError && error.message.startsWith("standby")) throw error;
    }
  }

  heard_(abort) {
    this.state.heard = Date.now();
    this.listen_(abort);
    if (Date.now() - this.touched_ < TOUCH_MS) return;
    this.touch_(abort).catch((error) => this.fail_(abort, error.message));
  }

  async connect_() {
    clearTimeout(this.timer_);
    this.timer_ = 0;
    this.abort_?.abort();
    const abort = new AbortController();
    this.abort_ = abort;
    this.listen_(abort);
    let reason = "the connection ended";
    try {
      await this.touch_(abort);
      const response = await api.open("resource.journal", { ...this.position, allocations: true }, abort.signal);
      await sse.read(
        response,
        (message) => {
          if (abort !== this.abort_) return;
          if (message.event === "end") reason = JSON.parse(message.data).text;
          else this.batch_(JSON.parse(message.data));
        },
        () => this.heard_(abort),
      );
    } catch (error) {
      if (abort !== this.abort_) return;
      const isLost = error.errno === EHOSTUNREACH && this.failures >= REFUSALS;
      if (isLost || (error.status >= 400 && error.status < 500 && error.status !== 429)) {
        this.stop(error.message);
        this.handlers.lost();
        return;
      }
      reason = error instanceof api.ApiError ? error.message : "the connection was lost";
    }
    this.fail_(abort, reason);
  }

  batch_(batch) {
    this.handlers.batch(batch);
    // Move the position after the batch was handled: one that failed is sent again.
    if (typeof batch.last === "number") this.position = { after: batch.last };
    if (batch.events.length > 0) return;
    this.failures = 0;
    this.set_(true, "live");
    this.handlers.caughtUp();
  }
}
