// The page: connects the views, and follows the address. The address determines the view (router.js), the store has the
// state of the daemon (store.js).
import * as api from "./api.js";
import * as drains from "./drains.js";
import * as keys from "./keys.js";
import * as layout from "./layout.js";
import * as router from "./router.js";
import * as search from "./search.js";
import * as side from "./side.js";
import * as table from "./table.js";
import * as theme from "./theme.js";
import { badge, byId, el, number, replace, setText, throttled } from "./dom.js";
import { EventsView } from "./events.js";
import { MapView } from "./map.js";
import { NodePanel } from "./node.js";
import { Past } from "./past.js";
import { Store } from "./store.js";
import { STATES } from "./states.js";
import { Summary, sentence } from "./summary.js";
import { SystemView } from "./system.js";
import { duration, stamp } from "./time.js";
import * as users from "./users.js";

const VIEWS = ["map", "drains", "events", "system"];
const AGE_MS = 15000; // The interval at which ages on the page are updated.
const ANNOUNCE_MS = 4000;

let place = router.parse(location.hash);
let lastView = "#/map";

const store = new Store({
  loaded: () => loaded(),
  changed: (nodes) => changed(nodes),
  layout: () => relayout(),
  events: (events) => {
    panel.take(events, store.model);
    eventsView.take(events);
    drawSideSoon();
  },
  restarted: () => {
    panel.restart();
    eventsView.restart();
  },
  live: (state) => {
    drawLive(state);
    if (state.live) retry();
  },
  failed: (error) => {
    store.live.stop(error.message);
    if (error.status === 401) askToken();
  },
});

// The model that the views show: of the present, or of a time of the past.
const shown = () => past.model ?? store.model;
const now = () => (past.model ? past.at : Date.now() / 1000);

// The interface of the page for the views.
const app = {
  get model() {
    return shown();
  },
  get isPast() {
    return past.model !== null;
  },
  now: () => now(),
  get recent() {
    return store.recent;
  },
  close: () => go(lastView),
  replaceParams: (params) => {
    const next = router.format({ ...place, params: { ...place.params, ...params } });
    history.replaceState(null, "", next);
    navigate();
  },
};

const go = (fragment) => {
  if (location.hash === fragment) navigate();
  else location.hash = fragment;
};

const announce = (text) => setText(byId("announce"), text);

const map = new MapView(
  { area: byId("map"), cells: byId("cells"), marks: byId("marks"), tip: byId("tip") },
  {
    open: (index) => go(router.format({ view: "node", argument: shown().hosts[index], params: kept() })),
    announce,
    now: () => now(),
  },
);
const panel = new NodePanel(app, byId("node"));
const eventsView = new EventsView(app, byId("view-events"));
const systemView = new SystemView(app, byId("view-system"));
const past = new Past({
  choose: (at) => app.replaceParams({ at: at ? String(at) : "" }),
  changed: () => showModel(),
});
const summary = new Summary(byId("summary"), (query) => setQuery(query));

// Parameters of the map that remain when a node is opened.
const kept = () => {
  const { q, group, as, at } = place.params;
  return { q, group, as, at };
};

const isMap = () => place.view === "map" || place.view === "node";
const grouping = () =>
  layout.GROUPINGS.includes(place.params.group) ? place.params.group : layout.bestGrouping(shown());

let shownGrouping = null;
let found = null;

const findMatches = () => {
  const query = place.params.q ?? "";
  found = query ? search.match(shown(), query) : null;
  setText(byId("found"), found?.problem ?? (found ? `${number(found.count)} found` : ""));
  byId("found").classList.toggle("warning", Boolean(found?.problem));
};

const showMap = () => {
  if (!store.isLoaded || !isMap()) return;
  const wanted = grouping();
  if (shownGrouping?.model !== shown() || shownGrouping.name !== wanted) {
    shownGrouping = { model: shown(), name: wanted };
    map.show(shown(), wanted);
  }
  byId("grouping").value = wanted;
};

// Shows another model, or a new state of it.
const showModel = () => {
  if (!store.isLoaded) return;
  shownGrouping = null;
  findMatches();
  map.mask = found?.mask ?? null;
  showMap();
  select();
  drawAll();
  announceSoon();
};

// Retries failed reads, such as the history of a node that did not exist.
const retry = () => {
  panel.retry();
  eventsView.retry();
};

const loaded = () => {
  past.open(timeOf(place), store.model);
  if (!past.model) showModel();
  retry();
  if (!isPainted) markPainted();
};

// Returns the time in the address, undefined for now.
const timeOf = ({ view, params }) =>
  (view !== "map" && view !== "node") || !(Number(params.at) > 0) ? undefined : Number(params.at);

// Marks the page as painted: the frame is on the screen when the task after it runs.
let isPainted = false;
const markPainted = () => {
  isPainted = true;
  requestAnimationFrame(() => setTimeout(() => performance.mark("painted")));
};

const relayout = () => {
  if (past.model) return;
  shownGrouping = null;
  showMatches();
  showMap();
  drawAll();
};

const matchSoon = throttled(() => {
  findMatches();
  map.highlight(found?.mask ?? null);
}, 250);

const changed = (nodes) => {
  if (past.model) return;
  // Repeat the search, because a search for a state follows the states.
  if (found) matchSoon();
  if (nodes.length > 0) map.update(shown(), nodes);
  if (nodes.length === 0 || nodes.includes(shown().find(place.argument))) panel.render();
  summary.draw(shown(), place.params.q ?? "");
  drawCounts();
  drawListsSoon();
  drawSideSoon();
  announceSoon();
};

const drawCounts = () => {
  const count = byId("drain-count");
  const drained = shown().drains.size;
  count.hidden = drained === 0;
  setText(count, number(drained));
  byId("map").setAttribute("aria-label", `Map. ${sentence(shown())}`);
  setText(byId("cluster"), layout.clusterName(store.model, location.hostname));
  const view = place.view === "map" ? "" : place.view[0].toUpperCase() + place.view.slice(1);
  const parts = [place.view === "node" ? place.argument : view, byId("cluster").textContent, "resourced"];
  document.title = (drained > 0 ? `(${number(drained)}) ` : "") + parts.filter((part) => part !== "").join(" · ");
};

const drawLists = () => {
  if (!store.isLoaded) return;
  if (place.view === "drains")
    drains.render(byId("view-drains"), shown(), place.params.by === "age" ? "age" : "reason", now());
  if (isMap() && place.params.as === "table")
    table.render(byId("table"), shown(), layout.groups(shown(), grouping()), found?.mask);
};
const drawListsSoon = throttled(drawLists, 500);

const drawSide = () => {
  if (!store.isLoaded) return;
  if (!byId("overview").hidden)
    side.render(
      byId("overview"),
      shown(),
      store.notable.filter((event) => event.timestamp <= now()),
      now(),
    );
};
const drawSideSoon = throttled(drawSide, 200);

const drawAll = () => {
  summary.draw(shown(), place.params.q ?? "");
  drawCounts();
  drawLists();
  drawSide();
  panel.render();
  if (place.view === "events") eventsView.draw();
  if (place.view === "system") systemView.draw();
};

// Announces the states as a sentence for screen readers, not more often than it can be read.
let announcedText = "";
const announceStates = () => {
  const text = sentence(shown());
  if (text !== announcedText) announce(text);
  announcedText = text;
};
const announceSoon = throttled(announceStates, ANNOUNCE_MS);

const drawLive = (state) => {
  const element = byId("live");
  // After a failure the view is not live: later events do not determine the state.
  const isLive = state.live && !store.failure;
  element.classList.toggle("is-live", isLive);
  setText(element, isLive ? "live" : "not live");
  const stale = byId("stale");
  stale.hidden = isLive || state.text === "connecting";
  if (!stale.hidden) {
    const text = state.live ? store.failure : state.text;
    const how = !store.isLoaded
      ? "The page tries again."
      : state.live
        ? "The page shows an older state, and asks again."
        : `The page shows the state of ${duration((Date.now() - state.heard) / 1000)} ago, and tries to connect again.`;
    setText(byId("stale-text"), ` ${text[0].toUpperCase()}${text.slice(1)}. ${how}`);
  }
};

const drawClock = () => {
  const text = stamp(Date.now() / 1000);
  byId("clock").dateTime = text;
  setText(byId("clock"), text.slice(11));
};

const select = () => {
  const host = place.view === "node" ? place.argument : null;
  const index = host === null ? undefined : shown().find(host);
  document.body.classList.toggle("has-node", host !== null);
  byId("overview").hidden = host !== null;
  map.select(index);
  if (host === null) panel.close();
  else if (store.isLoaded) panel.open(host);
};

const setQuery = (query) => {
  const now = router.parse(location.hash); // `place` may not be updated yet.
  const isHere = now.view === "map" || now.view === "node";
  const base = isHere ? now : { view: "map", params: {} };
  const next = router.format({ ...base, params: { ...base.params, q: query } });
  if (!isHere) {
    go(next);
    return;
  }
  history.replaceState(null, "", next);
  place = router.parse(next);
  showPlace();
  if (store.isLoaded) showMatches();
};

// Shows the matches of a search, which changes only the brightness of nodes on the map, so it costs little beside the
// search itself.
const showMatches = () => {
  findMatches();
  map.highlight(found?.mask ?? null);
  summary.draw(shown(), place.params.q ?? "");
  drawLists();
};

// Shows the view of the address, and the links that depend on it.
const showPlace = () => {
  const view = isMap() ? "map" : place.view;
  for (const name of VIEWS) byId(`view-${name}`).hidden = name !== view;
  for (const link of byId("views").querySelectorAll("a")) {
    if (link.dataset.view === view) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.body.dataset.view = view;
  if (document.activeElement !== byId("query")) byId("query").value = place.params.q ?? "";
  const asTable = isMap() && place.params.as === "table";
  byId("map").hidden = asTable;
  byId("table").hidden = !asTable;
  byId("zoom").hidden = asTable;
  for (const [id, as] of [
    ["as-map", ""],
    ["as-table", "table"],
  ]) {
    byId(id).href = router.format({ view: "map", params: { ...place.params, as } });
    byId(id).setAttribute("aria-current", String(asTable === (as === "table")));
  }
  if (place.view !== "node") lastView = router.format(place);
  else if (router.parse(lastView).view === "map") lastView = router.format({ view: "map", params: kept() });
};

/** Shows the view of the address. */
const navigate = () => {
  place = router.parse(location.hash);
  if (place.view !== "node" && !VIEWS.includes(place.view)) place = { view: "map", argument: "", params: {} };
  showPlace();
  if (place.view === "events") eventsView.open(place.params);
  if (place.view === "system") systemView.open();
  else systemView.close();
  if (!store.isLoaded) return;
  past.open(timeOf(place), store.model);
  showMatches();
  showMap();
  select();
  drawAll();
};

const openSearch = () => {
  byId("query").focus();
  byId("query").select();
};

const togglePast = () => {
  if (isMap()) app.replaceParams({ at: place.params.at ? "" : String(Math.floor(Date.now() / 1000)) });
};

const escape = () => {
  if (place.view === "node") go(lastView);
  else if (place.params.at) togglePast();
  else if (place.params.q) {
    byId("query").value = "";
    setQuery("");
  }
  if (document.activeElement === byId("query")) byId(isMap() ? "map" : "main").focus();
};

const nextGrouping = () => {
  if (!isMap()) return;
  const at = layout.GROUPINGS.indexOf(grouping());
  app.replaceParams({ group: layout.GROUPINGS[(at + 1) % layout.GROUPINGS.length] });
};

// Asks for a token, because the daemon requires one, or refused the last one.
const askToken = () => {
  const dialog = byId("token-dialog");
  if (!dialog.open) dialog.showModal();
};

const openHelp = () => {
  byId("help").showModal();
  byId("help").scrollTop = 0;
};

const start = () => {
  const nextTheme = theme.start(byId("theme"), () => {
    map.recolour();
    panel.render();
  });
  byId("query").addEventListener(
    "input",
    throttled(() => setQuery(byId("query").value)),
  );
  byId("search").addEventListener("submit", (event) => {
    event.preventDefault();
    const index = search.first(shown(), byId("query").value);
    if (index === undefined) announce("nothing found");
    else go(router.format({ view: "node", argument: shown().hosts[index], params: kept() }));
  });
  byId("grouping").addEventListener("change", (event) => app.replaceParams({ group: event.target.value }));
  byId("zoom-in").addEventListener("click", () => map.zoom(1.5));
  byId("zoom-out").addEventListener("click", () => map.zoom(1 / 1.5));
  byId("zoom-fit").addEventListener("click", () => map.fitAll());
  byId("past-button").addEventListener("click", togglePast);
  byId("retry").addEventListener("click", () => store.live.retryNow());
  byId("help-button").addEventListener("click", openHelp);
  replace(
    byId("legend"),
    STATES.flatMap((state) => [el("dt", {}, badge(state), ` ${state.label}`), el("dd", {}, state.text)]),
  );
  byId("token-form").addEventListener("submit", () => {
    api.setToken(byId("token").value.trim());
    byId("token").value = "";
    store.restart();
  });
  keys.start(
    new Map([
      ["/", openSearch],
      ["?", openHelp],
      ["Escape", escape],
      ["t", nextTheme],
      ["g", nextGrouping],
      ["h", togglePast],
      ["m", () => go("#/map")],
      ["d", () => go("#/drains")],
      ["e", () => go("#/events")],
      ["s", () => go("#/system")],
      ["n", () => isMap() && map.nextProblem(1)],
      ["p", () => isMap() && map.nextProblem(-1)],
      ["+", () => map.zoom(1.5)],
      ["=", () => map.zoom(1.5)],
      ["-", () => map.zoom(1 / 1.5)],
      ["0", () => map.fitAll()],
    ]),
  );
  byId("map").addEventListener("focus", () => map.markSoon());
  byId("map").addEventListener("blur", () => map.markSoon());
  window.addEventListener("hashchange", navigate);
  setInterval(() => {
    drawLists();
    drawSide();
    // Keep text that the user selects to copy.
    if (getSelection().isCollapsed) panel.render();
    if (!document.hidden) panel.refresh();
  }, AGE_MS);
  setInterval(() => {
    drawLive(store.live.state);
    drawClock();
  }, 1000);
  drawClock();
  users.start(throttled(() => store.isLoaded && drawAll(), 200));
  navigate();
  store.restart();
};

start();
