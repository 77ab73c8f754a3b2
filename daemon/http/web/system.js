// The daemon and its peers: schedulers, partitions, agents, counters.
import * as api from "./api.js";
import * as hostlist from "./hostlist.js";
import * as idset from "./idset.js";
import { badge, el, number, replace, table } from "./dom.js";
import { hostsText } from "./eventtext.js";
import { actorText } from "./model.js";
import { field, hostsLink, searchLink } from "./rows.js";
import { ONLINE, STATES } from "./states.js";
import { duration, stamp } from "./time.js";

const REFRESH_MS = 5000;

const indicesOf = (model, ranges) => {
  const indices = [];
  model.each(ranges, (index) => indices.push(index));
  return indices;
};

const countsOf = (model, indices) => {
  const counts = new Array(STATES.length).fill(0);
  for (const index of indices) ++counts[model.state(index)];
  return counts;
};

/** Returns which targets of a partition its scheduler does not have yet, and which it still has; "" for none. */
const notesOf = ({ waiting, leaving }) =>
  [waiting ? `${waiting} wait for a scheduler` : "", leaving ? `${leaving} are leaving` : ""].filter(Boolean).join(", ");

/** Makes a bar of the states of nodes with its numbers; zeros are left out. */
export const stateBar = (counts) => {
  const shown = STATES.map((state, i) => ({ state, count: counts[i] })).filter(({ count }) => count > 0);
  const bar = el(
    "div",
    { className: "state-bar", aria: { hidden: "true" } },
    shown.map(({ state, count }) => {
      const part = el("span", { className: `state-${state.name}` });
      part.style.flexGrow = String(count);
      return part;
    }),
  );
  return el(
    "div",
    {},
    bar,
    el(
      "div",
      { className: "state-numbers" },
      shown.map(({ state, count }) => el("span", {}, badge(state), ` ${number(count)} ${state.label}`)),
    ),
  );
};

export class SystemView {
  constructor(app, element) {
    this.app = app;
    this.element = element;
    this.peers = null;
    this.stats = null;
    this.failure = "";
    this.abort_ = null; // Set while the view is open.
  }

  open() {
    this.draw();
    if (this.abort_) return;
    this.abort_ = new AbortController();
    this.follow_(this.abort_.signal);
  }

  close() {
    this.abort_?.abort();
    this.abort_ = null;
  }

  // Repeats the questions some time after the last answer, so that a slow daemon gets no additional ones.
  async follow_(signal) {
    while (!signal.aborted) {
      if (!document.hidden) await this.refresh_(signal);
      await new Promise((done) => setTimeout(done, REFRESH_MS));
    }
  }

  async refresh_(signal) {
    const [peers, stats] = await Promise.allSettled([
      api.get("resource.peers", {}, signal),
      api.get("resource.stats-get", {}, signal),
    ]);
    if (signal.aborted) return;
    this.peers = peers.value ?? null;
    this.stats = stats.value ?? null;
    this.failure = (peers.reason ?? stats.reason)?.message ?? "";
    this.draw();
  }

  draw() {
    const { model } = this.app;
    replace(
      this.element,
      el("div", { className: "section-head" }, el("h1", {}, "System")),
      this.failure ? el("p", { className: "warning" }, this.failure) : null,
      el("section", {}, el("h2", {}, "Schedulers"), this.schedulers_(model), this.rest_(model)),
      model.partitions.length > 0 ? el("section", {}, el("h2", {}, "Partitions"), this.partitions_(model)) : null,
      el("section", {}, el("h2", {}, "Agents"), this.agents_(model)),
      this.removed_(model),
      el("section", {}, el("h2", {}, "Daemon"), this.daemon_(model)),
    );
  }

  schedulers_(model) {
    const holders = this.peers?.holders;
    if (!holders) return el("p", { className: "faint" }, "…");
    if (holders.length === 0) return el("p", { className: "faint" }, "No scheduler holds resources.");
    const now = Date.now() / 1000;
    return table(
      ["Partition", "Scheduler", "Since", "Nodes", "Hosts", "Allocations"],
      holders.map((holder) => {
        const nodes = indicesOf(model, idset.parse(holder.targets));
        return el(
          "tr",
          {},
          el("td", {}, holder.partition ?? "—"),
          el("td", {}, actorText(holder.by) || "unknown"),
          el("td", {}, `${stamp(holder.since)} (${duration(now - holder.since)})`),
          el("td", { className: "number", data: { sort: nodes.length } }, number(nodes.length)),
          el("td", { className: "wrap" }, hostsLink(model, hostsText(model, nodes))),
          el("td", {}, holder.allocations ? "reported" : "not reported"),
        );
      }),
    );
  }

  rest_({ rest }) {
    const notes = rest ? notesOf(rest) : "";
    return notes ? el("p", { className: "faint" }, `Ranks in no partition: ${notes}.`) : null;
  }

  partitions_(model) {
    return table(
      ["Partition", "Held", "Nodes", "States"],
      model.partitions.map((partition) => {
        const nodes = indicesOf(model, partition.ranks);
        const notes = notesOf(partition);
        return el(
          "tr",
          {},
          el("td", {}, searchLink(`part:${partition.name}`, partition.name)),
          el("td", {}, this.peers?.holders?.some((holder) => holder.partition === partition.name) ? "yes" : "no"),
          el(
            "td",
            { className: "number", data: { sort: nodes.length } },
            number(nodes.length),
            notes ? el("div", { className: "faint" }, notes) : null,
          ),
          el("td", { className: "wide" }, stateBar(countsOf(model, nodes))),
        );
      }),
    );
  }

  agents_(model) {
    if (!this.peers) return el("p", { className: "faint" }, "…");
    const connected = idset.parse(this.peers.agents ?? "");
    const count = idset.count(connected);
    if (count === 0) return el("p", { className: "faint" }, "No node agents are connected.");
    const missing = [];
    for (let index = 0; index < model.size; ++index) if (!idset.has(connected, model.ranks[index])) missing.push(index);
    const silent = missing.filter((index) => model.flags[index] & ONLINE);
    return el(
      "dl",
      { className: "fields" },
      ...field("Connected", `${number(count)} of ${number(model.size)}`),
      ...field("Without", missing.length > 0 ? hostsLink(model, hostsText(model, missing)) : ""),
      ...field("Online without", silent.length > 0 ? hostsLink(model, hostsText(model, silent)) : ""),
    );
  }

  removed_(model) {
    if (model.shrunk.length === 0) return null;
    return el(
      "section",
      {},
      el("h2", {}, "Shrunk nodes"),
      el(
        "dl",
        { className: "fields" },
        ...field("Shrunk", hostlist.encode(model.shrunk)),
        ...field("Returning", hostlist.encode(model.returning)),
      ),
    );
  }

  daemon_(model) {
    const stats = this.stats;
    if (!stats) return el("p", { className: "faint" }, "…");
    const { cores, gpus } = model.total;
    const requests = Object.entries(stats.requests ?? {}).sort(
      (a, b) => b[1].succeeded + b[1].failed - a[1].succeeded - a[1].failed,
    );
    return el(
      "div",
      { className: "columns" },
      el(
        "dl",
        { className: "fields" },
        ...field("Inventory", `${number(model.size)} nodes, ${number(cores)} cores, ${number(gpus)} gpus`),
        ...field(
          "Allocated",
          model.ledgerKnown ? `${number(model.used.cores)} cores, ${number(model.used.gpus)} gpus` : "",
        ),
        ...field("Expires", model.expiration ? stamp(model.expiration) : "never"),
        ...field("Memory", `${number(Math.round(stats.memory / 1048576))} MiB`),
        ...field(
          "Longest hold",
          stats["longest-hold"]?.topic
            ? `${stats["longest-hold"].ms.toFixed(1)} ms, ${stats["longest-hold"].topic}`
            : "",
        ),
        ...field(
          "Longest wait",
          stats["longest-wait"]?.topic
            ? `${stats["longest-wait"].ms.toFixed(1)} ms, ${stats["longest-wait"].topic}`
            : "",
        ),
        ...field(
          "Clients",
          `${number(stats.clients)} connected, ${number(stats.subscribers)} schedulers, ${number(stats["journal-consumers"])} journal streams`,
        ),
        ...field("Events", `${number(stats.events)} in ${number(stats.commits)} commits`),
        ...field(
          "Refused",
          `${number(stats["denied-requests"])} without the role, ${number(stats["limited-requests"])} over a limit, ${number(stats["refused-connections"])} connections`,
        ),
        ...field(
          "Dropped",
          `${number(stats["dropped-clients"])} clients that did not read, ${number(stats["dropped-frames"])} invalid messages`,
        ),
      ),
      table(
        ["Topic", "Succeeded", "Failed"],
        requests.map(([topic, counts]) =>
          el(
            "tr",
            {},
            el("td", {}, el("code", {}, topic)),
            el("td", { className: "number", data: { sort: counts.succeeded } }, number(counts.succeeded)),
            el("td", { className: "number", data: { sort: counts.failed } }, number(counts.failed)),
          ),
        ),
      ),
    );
  }
}
