// Past events: reads the journal from a time up to its present end, and no further.
import * as api from "./api.js";
import * as sse from "./sse.js";

/**
 * Reads events of the journal with these request keys, at most `max` of the newest: {events, complete, last}.
 * `complete` is false if older ones were left out; `last` is the number of the last event of the log, undefined if
 * events have no numbers.
 */
export const read = async (params, max, signal) => {
  const abort = new AbortController();
  signal?.addEventListener("abort", () => abort.abort());
  const events = [];
  let complete = true;
  let failure = null;
  let last;
  try {
    const response = await api.open("resource.journal", { allocations: true, ...params }, abort.signal);
    await sse.read(response, (message) => {
      if (message.event === "end") failure = JSON.parse(message.data).text;
      else {
        const batch = JSON.parse(message.data);
        for (const event of batch.events) events.push(event);
        if (events.length > 2 * max) {
          events.splice(0, events.length - max);
          complete = false;
        }
        last = batch.last;
        if (batch.events.length === 0) abort.abort();
      }
    });
    if (failure) throw new Error(failure);
  } catch (error) {
    if (error.name !== "AbortError" || signal?.aborted) throw error;
  }
  if (events.length > max) {
    events.splice(0, events.length - max);
    complete = false;
  }
  return { events, complete, last };
};

// A time after all events, for which only the end of the history is sent.
const FAR = 4102444800;

/** Returns the number of the last event of the log, undefined if events have no numbers. */
export const lastNumber = async (signal) => (await read({ since: FAR }, 1, signal)).last;

/**
 * Joins later events to those in order. Events that are received twice, such as those during the reading of a history,
 * are kept once. Changes `past`, and returns it.
 */
export const join = (past, events) => {
  for (const event of events) {
    let place = past.length;
    while (place > 0 && past[place - 1].timestamp > event.timestamp) --place;
    if (!hasTwin(past, place, event)) past.splice(place, 0, event);
  }
  return past;
};

const hasTwin = (past, end, event) => {
  for (let at = end - 1; at >= 0 && past[at].timestamp === event.timestamp; --at)
    if (JSON.stringify(past[at]) === JSON.stringify(event)) return true;
  return false;
};

/** Events of a longer time, which are read once and extended by live ones. */
export class Record {
  constructor() {
    this.stop();
  }

  /** Removes the events, and ends a reading. */
  stop() {
    this.abort_?.abort();
    this.events = null;
    this.meanwhile_ = null; // Live events while others are read.
  }

  /** Reads as read() does. Returns {complete}, or null if another reading has replaced this one. */
  async read(params, max) {
    this.stop();
    const { signal } = (this.abort_ = new AbortController());
    const meanwhile = (this.meanwhile_ = []);
    try {
      const { events, complete } = await read(params, max, signal);
      if (signal.aborted) return null;
      this.events = join(events, meanwhile);
      return { complete };
    } catch (error) {
      if (signal.aborted) return null;
      throw error;
    } finally {
      if (!signal.aborted) this.meanwhile_ = null;
    }
  }

  /** Adds live events; keeps at most twice `max`. */
  take(events, max) {
    if (this.meanwhile_) this.meanwhile_.push(...events);
    if (!this.events) return;
    join(this.events, events);
    if (this.events.length > 2 * max) this.events.splice(0, this.events.length - max);
  }
}
