// The position of each node on the map: groups of nodes, blocks of cells for the groups, and the cell at a position.
// Lengths are device pixels. Blocks keep their columns while the map is zoomed, so nodes keep their neighbours.
import * as hostlist from "./hostlist.js";

export const GROUPINGS = ["partition", "property", "name", "none"];

// Maximum number of groups; more are shown as one, because their headings would leave no room for nodes.
const MAX_GROUPS = 2000;

const byKey = (model, keys, noneText) => {
  const groups = new Map();
  for (const index of model.order) {
    const group = groups.get(keys[index]);
    if (group) group.push(index);
    else groups.set(keys[index], [index]);
  }
  return [...groups].map(([key, nodes]) => ({ name: key === "" ? noneText : key, nodes }));
};

// Returns the prefix of each host name, computed once for a run of hosts whose number is at the end of the name.
const keysOfNames = (model) => {
  const keys = new Array(model.size).fill("");
  let index = 0;
  for (const run of model.runs) {
    const isLast = run.width > 0 && !/[0-9]/.test(run.suffix);
    for (const end = index + run.count; index < end; ++index)
      keys[index] = isLast ? run.prefix : hostlist.stem(model.hosts[index]);
  }
  return keys;
};

// Returns the names of the sets of each node.
const keysOfSets = (model, sets) => {
  const keys = new Array(model.size).fill("");
  for (const [name, ranks] of sets)
    model.each(ranks, (index) => (keys[index] = keys[index] ? `${keys[index]}, ${name}` : name));
  return keys;
};

/** Returns groups as [{name, nodes}], nodes in natural order. */
export const groups = (model, grouping) => {
  let found = [];
  if (grouping === "partition") {
    found = byKey(
      model,
      keysOfSets(
        model,
        model.partitions.map((p) => [p.name, p.ranks]),
      ),
      "no partition",
    );
  } else if (grouping === "property") {
    found = byKey(
      model,
      keysOfSets(
        model,
        [...model.properties].sort(([a], [b]) => (a < b ? -1 : 1)),
      ),
      "no property",
    );
  } else if (grouping === "name") {
    found = byKey(model, keysOfNames(model), "no name");
  }
  if (found.length === 0 || found.length > MAX_GROUPS) found = [{ name: "", nodes: model.order }];
  return found;
};

/** Returns the most useful grouping of an inventory: partitions if there are any, else several name prefixes. */
export const bestGrouping = (model) => {
  if (model.partitions.length > 0) return "partition";
  const stems = new Set(model.runs.map((run) => (run.width > 0 ? run.prefix : hostlist.stem(run.prefix))));
  return stems.size > 1 && stems.size <= 200 ? "name" : "none";
};

/** Returns a name for a cluster: the common prefix of its hosts' names, and the address of the page. */
export const clusterName = (model, address) => {
  let common = null;
  for (const { prefix } of model.runs) {
    if (common === null) common = prefix;
    while (!prefix.startsWith(common)) common = common.slice(0, -1);
  }
  const name = (common ?? "").replace(/[^A-Za-z]+$/, "");
  return name === "" || name === address ? address : `${name} · ${address}`;
};

const shelves = (sizes, columns) => {
  const result = [];
  for (let i = 0; i < sizes.length; i += columns.length) {
    const row = sizes.slice(i, i + columns.length);
    result.push({ first: i, count: row.length, rows: Math.max(...row.map((size, j) => Math.ceil(size / columns[j]))) });
  }
  return result;
};

// Arranges blocks in rows of `across` equal columns at this pitch.
const arrange = (sizes, across, pitch, { width, heading, gap }) => {
  const each = Math.floor((width - (across - 1) * gap) / across);
  const columns = Math.floor(each / pitch);
  if (columns < 1) return null;
  const rows = shelves(sizes, new Array(across).fill(columns));
  const cells = rows.reduce((sum, shelf) => sum + shelf.rows, 0);
  return { across, columns, shelves: rows, height: cells * pitch + rows.length * (heading + gap) };
};

// Maximum number of blocks side by side that is tried.
const MAX_ACROSS = 24;

const best = (sizes, pitch, area) => {
  let found = null;
  for (let across = 1; across <= Math.min(MAX_ACROSS, sizes.length); ++across) {
    if (across > 1 && area.width / across < area.minimum) break;
    const tried = arrange(sizes, across, pitch, area);
    if (tried && (!found || tried.height < found.height)) found = tried;
  }
  return found;
};

/**
 * Returns the largest cells for which groups of these sizes fit into an area {width, height, heading, gap, minimum,
 * smallest, largest}: {pitch, across, columns, shelves, height}. With the smallest cells the map may be higher than the
 * area.
 */
export const fit = (sizes, area) => {
  let low = area.smallest;
  let high = area.largest;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    const tried = best(sizes, middle, area);
    if (tried && tried.height <= area.height) low = middle;
    else high = middle - 1;
  }
  return { pitch: low, ...(best(sizes, low, area) ?? arrange(sizes, 1, 1, area)) };
};

/**
 * Returns blocks of a fitted layout at a pitch: {x, y, width, height, columns, group}, the position of the first cell.
 */
export const place = (fitted, sizes, pitch, { heading, gap }) => {
  const blocks = [];
  let y = 0;
  for (const shelf of fitted.shelves) {
    y += heading;
    for (let i = 0; i < shelf.count; ++i) {
      const size = sizes[shelf.first + i];
      const x = i * (fitted.columns * pitch + gap);
      blocks.push({
        group: shelf.first + i,
        x,
        y,
        columns: fitted.columns,
        size,
        rows: Math.ceil(size / fitted.columns),
        shelf,
      });
    }
    y += shelf.rows * pitch + gap;
  }
  const width = fitted.across * fitted.columns * pitch + (fitted.across - 1) * gap;
  return { blocks, width, height: y };
};

/** Returns the block and the position within its group at a point of the map; null for none. */
export const hit = (blocks, pitch, x, y) => {
  let low = 0;
  let high = blocks.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    const block = blocks[middle];
    const below = y >= block.y + block.shelf.rows * pitch;
    const right = !below && y >= block.y && x >= block.x + block.columns * pitch;
    if (below || right) low = middle + 1;
    else high = middle;
  }
  const block = blocks[low];
  if (!block || x < block.x || y < block.y) return null;
  const column = Math.floor((x - block.x) / pitch);
  const position = Math.floor((y - block.y) / pitch) * block.columns + column;
  return column < block.columns && position < block.size ? { block, position } : null;
};

/** Returns the point of the map for a position of a block. */
export const cell = (block, position, pitch) => ({
  x: block.x + (position % block.columns) * pitch,
  y: block.y + Math.floor(position / block.columns) * pitch,
});
