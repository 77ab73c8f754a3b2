// Elements of the page. All text is added as text nodes: reasons, notes and names come from users and may contain
// anything.

/**
 * Makes an element with properties and children. `on` has listeners, `data` and `aria` attributes; null children are
 * left out.
 */
export const el = (tag, options = {}, ...children) => {
  const { on = {}, data = {}, aria = {}, ...properties } = options;
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null) continue;
    if (name in element) element[name] = value;
    else element.setAttribute(name, value);
  }
  for (const [name, value] of Object.entries(data)) element.dataset[name] = value;
  for (const [name, value] of Object.entries(aria)) element.setAttribute(`aria-${name}`, value);
  for (const [name, listener] of Object.entries(on)) element.addEventListener(name, listener);
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
};

/** Sets the text of an element if it differs, so that screen readers do not read it twice. */
export const setText = (element, text) => {
  if (element.textContent !== text) element.textContent = text;
};

// Titles of columns of numbers, which are aligned at the right.
const NUMBERS = new Set(["Nodes", "Succeeded", "Failed", "For"]);

// Names the cells of rows: on a telephone a row is a list of its cells, each after the title of its column.
const nameCells = (heads, rows) => {
  for (const row of rows) for (const [i, cell] of [...row.children].entries()) cell.dataset.head = heads[i];
};

// How the user has sorted each table, by its titles: a table that is drawn anew keeps the order.
const orders = new Map();
const { compare } = new Intl.Collator(undefined, { numeric: true });

// What a cell is sorted by: its text, or the number that `data-sort` has.
const sortKey = (cell) => (cell.dataset.sort === undefined ? cell.textContent : Number(cell.dataset.sort));

const sortRows = (head, body, { column, down }) => {
  for (const [i, cell] of [...head.children].entries())
    if (i === column) cell.setAttribute("aria-sort", down ? "descending" : "ascending");
    else cell.removeAttribute("aria-sort");
  const order = (a, b) => (typeof a === "number" && typeof b === "number" ? a - b : compare(String(a), String(b)));
  const keyed = [...body.children].map((row) => [sortKey(row.children[column]), row]);
  keyed.sort(([a], [b]) => (down ? order(b, a) : order(a, b)));
  body.append(...keyed.map(([, row]) => row));
};

/**
 * Makes a table in a frame that scrolls, from the titles of its columns and its rows. The caption is for screen
 * readers. A click on a title sorts by its column, another one the other way round.
 */
export const table = (heads, rows, caption) => {
  nameCells(heads, rows);
  const name = heads.join();
  const body = el("tbody", {}, rows);
  const sort = (column) => {
    const last = orders.get(name);
    // Numbers begin with the largest.
    const down = last?.column === column ? !last.down : NUMBERS.has(heads[column]);
    orders.set(name, { column, down });
    sortRows(head, body, orders.get(name));
  };
  const head = el(
    "tr",
    {},
    heads.map((title, column) =>
      el(
        "th",
        { scope: "col", className: NUMBERS.has(title) ? "number" : "" },
        el("button", { type: "button", on: { click: () => sort(column) } }, title),
      ),
    ),
  );
  if (orders.has(name)) sortRows(head, body, orders.get(name));
  return el(
    "div",
    { className: "table-frame" },
    el("table", {}, caption ? el("caption", { className: "sr-only" }, caption) : null, el("thead", {}, head), body),
  );
};

// Returns the position of the focus within an element, as positions among children.
const focusPath = (element) => {
  const path = [];
  let at = document.activeElement;
  if (!element.contains(at) || at === element) return null;
  for (; at !== element; at = at.parentElement) path.unshift([...at.parentElement.children].indexOf(at));
  return path;
};

/** Replaces the children of an element. The focus moves to the element that replaces the one that had it. */
export const replace = (element, ...children) => {
  const path = focusPath(element);
  element.replaceChildren(...children.flat().filter((child) => child !== null && child !== undefined));
  path?.reduce((at, position) => at?.children[position], element)?.focus({ preventScroll: true });
};

export const byId = (id) => document.getElementById(id);

/** Returns a number such as `12,345`. */
export const number = (n) => n.toLocaleString("en");

/** Calls f at most once per animation frame, and at most every `ms`. */
export const throttled = (f, ms = 0) => {
  let pending = false;
  let last = 0;
  return () => {
    if (pending) return;
    pending = true;
    const run = () =>
      requestAnimationFrame(() => {
        pending = false;
        last = performance.now();
        f();
      });
    const wait = ms - (performance.now() - last);
    if (wait > 0) setTimeout(run, wait);
    else run();
  };
};

/** Makes a small square that shows a state like the map. */
export const badge = (state) =>
  el("span", { className: `badge state-${state.name}`, aria: { hidden: "true" } }, state.glyph);
