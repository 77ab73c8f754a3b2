// Past events: the journal read from a time up to its present end, and no further.
import * as api from "./api.js";
import * as sse from "./sse.js";

/**
 * Events of the journal with these request keys, at most `max` of the newest: {events, complete, last}. `complete` is false
 * if older ones were left out; `last` is the number of the last event that there is, undefined if events have no numbers.
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

// No event is after this time, so nothing but the end of the history is sent.
const FAR = 4102444800;

/** The number of the last event that there is, undefined if events have no numbers. */
export const lastNumber = async () => (await read({ since: FAR }, 1)).last;
