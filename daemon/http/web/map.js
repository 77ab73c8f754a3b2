// The map: all nodes as cells on a canvas, in natural order of their hosts, in groups. The lower canvas has the cells
// and is changed cell by cell; the upper one has the marks of the pointer, the keyboard and the selection.
import * as gestures from "./gestures.js";
import * as layout from "./layout.js";
import * as paint from "./paint.js";
import { setText, throttled } from "./dom.js";
import { Rings, drawFrames } from "./marks.js";
import { STATES, STATE_ALLOCATED, describe } from "./states.js";
import { duration } from "./time.js";

// Lengths in CSS pixels.
const LARGEST_CELL = 96;
const LARGEST_FITTED = 88;
const SMALLEST_CELL = 2;
const TAPPED_CELL = 18; // A finger cannot hit smaller cells reliably, so the first tap zooms in.
const NAMED_CELL = 40;
const HEADING = 22;
const GAP = 14;
const LEAST_BLOCK = 120;
// Number of changes above which the whole map is drawn.
const MANY_CELLS = 4000;

export class MapView {
  /** elements: {area, cells, marks, tip}. handlers: open(index), announce(text), now(). */
  constructor(elements, handlers) {
    Object.assign(this, elements);
    this.handlers = handlers;
    this.model = null;
    this.placed = null;
    this.grouping = "none";
    this.mask = null;
    this.selected = undefined;
    this.cursor = undefined;
    this.hovered = undefined;
    this.rings = new Rings(() => this.markSoon());
    this.zoomed = false;
    this.offset = { x: 0, y: 0 };
    this.drawSoon = throttled(() => this.draw());
    this.markSoon = throttled(() => this.mark());
    gestures.attach(this.marks, {
      pan: (dx, dy) => this.pan(dx * this.scale, dy * this.scale),
      zoom: (factor, x, y) => this.zoom(factor, x * this.scale, y * this.scale),
      tap: (x, y, isTouch) => this.tap_(x, y, isTouch),
      hover: (x, y) => this.hover_(x, y),
      leave: () => this.hover_(-1, -1),
    });
    this.area.addEventListener("keydown", (event) => this.key_(event));
    new ResizeObserver(() => this.resize()).observe(this.area);
  }

  get scale() {
    return this.ratio_ ?? 1;
  }

  /** Shows a model from its beginning; the zoom stays if the groups do. */
  show(model, grouping) {
    this.model = model;
    this.grouping = grouping;
    this.groups = layout.groups(model, grouping);
    this.sizes = this.groups.map((group) => group.nodes.length);
    this.groupOf = new Uint32Array(model.size);
    this.positionOf = new Uint32Array(model.size);
    this.groups.forEach((group, number) =>
      group.nodes.forEach((index, position) => {
        this.groupOf[index] = number;
        this.positionOf[index] = position;
      }),
    );
    if (this.cursor >= model.size) this.cursor = undefined;
    this.rings.clear();
    this.placed = null; // Unset until the map is visible.
    this.resize();
  }

  /** Reads the colours again. */
  recolour() {
    this.colours = null;
    this.sprites = null;
    if (this.model) this.draw();
  }

  resize() {
    if (!this.model || this.area.clientWidth === 0) return;
    this.ratio_ = window.devicePixelRatio || 1;
    const width = Math.round(this.area.clientWidth * this.scale);
    const height = Math.round(this.area.clientHeight * this.scale);
    if (this.cells.width !== width || this.cells.height !== height || !this.screen) {
      for (const canvas of [this.cells, this.marks]) Object.assign(canvas, { width, height });
      this.context = this.cells.getContext("2d", { alpha: false });
      this.image = this.context.createImageData(width, height);
      this.screen = { pixels: new Uint32Array(this.image.data.buffer), width, height };
    }
    this.spacing = { heading: Math.round(this.headingHeight_() * this.scale), gap: Math.round(GAP * this.scale) };
    this.fitted = layout.fit(this.sizes, {
      width,
      height,
      ...this.spacing,
      minimum: LEAST_BLOCK * this.scale,
      smallest: Math.max(1, Math.round(SMALLEST_CELL * this.scale)),
      largest: Math.round(LARGEST_FITTED * this.scale),
    });
    if (!this.zoomed || this.pitch < this.fitted.pitch) {
      this.zoomed = false;
      this.pitch = this.fitted.pitch;
    }
    this.place_();
    this.draw();
  }

  headingHeight_() {
    return this.groups.length === 1 && this.groups[0].name === "" ? 0 : HEADING;
  }

  place_() {
    this.placed = layout.place(this.fitted, this.sizes, this.pitch, this.spacing);
    this.clamp_();
  }

  clamp_() {
    this.offset.x = Math.round(Math.max(0, Math.min(this.offset.x, this.placed.width - this.screen.width)));
    this.offset.y = Math.round(Math.max(0, Math.min(this.offset.y, this.placed.height - this.screen.height)));
  }

  /** Draws the visible part of the map. */
  draw() {
    if (!this.placed) return;
    this.colours ??= paint.palette();
    const size = Math.max(1, this.pitch - paint.gapOf(this.pitch));
    if (this.sprites?.size !== size) this.sprites = paint.sprites(size, this.colours, this.isNamed_());
    this.screen.pixels.fill(paint.pixel(this.colours.background));
    for (const block of this.placed.blocks) this.drawBlock_(block);
    this.context.putImageData(this.image, 0, 0);
    this.drawHeadings_();
    if (this.isNamed_()) this.drawNames_();
    this.mark();
  }

  // Whether cells have room for the names of their nodes.
  isNamed_() {
    return this.pitch >= NAMED_CELL * this.scale;
  }

  // Returns the rows and columns of a block that are on the screen.
  visible_(block) {
    const from = (length, place) => Math.max(0, Math.floor((length - place) / this.pitch));
    const { x, y } = this.offset;
    return {
      firstRow: from(y, block.y),
      lastRow: Math.min(block.rows - 1, Math.floor((y + this.screen.height - block.y) / this.pitch)),
      firstColumn: from(x, block.x),
      lastColumn: Math.min(block.columns - 1, Math.floor((x + this.screen.width - block.x) / this.pitch)),
    };
  }

  eachVisible_(block, f) {
    const { firstRow, lastRow, firstColumn, lastColumn } = this.visible_(block);
    const nodes = this.groups[block.group].nodes;
    for (let row = firstRow; row <= lastRow; ++row) {
      const y = block.y + row * this.pitch - this.offset.y;
      const end = Math.min(block.size, row * block.columns + lastColumn + 1);
      for (let position = row * block.columns + firstColumn; position < end; ++position) {
        f(nodes[position], block.x + (position - row * block.columns) * this.pitch - this.offset.x, y);
      }
    }
  }

  drawBlock_(block) {
    const { size } = this.sprites;
    this.eachVisible_(block, (index, x, y) => paint.stamp(this.screen, this.picture_(index), size, x, y));
  }

  picture_(index) {
    const faded = this.mask && !this.mask[index];
    return this.sprites.pictures[this.model.state(index) + (faded ? STATES.length : 0)];
  }

  drawHeadings_() {
    if (this.spacing.heading === 0) return;
    const { context, scale } = this;
    context.textBaseline = "alphabetic";
    for (const block of this.placed.blocks) {
      const y = block.y - this.offset.y;
      if (y < 0 || y - this.spacing.heading > this.screen.height) continue;
      const x = block.x - this.offset.x;
      const width = this.fitted.columns * this.pitch;
      const group = this.groups[block.group];
      context.save();
      context.beginPath();
      context.rect(x, y - this.spacing.heading, width, this.spacing.heading);
      context.clip();
      context.font = `600 ${12 * scale}px system-ui, sans-serif`;
      context.fillStyle = this.colours.text;
      context.fillText(group.name, x, y - 7 * scale);
      const after = context.measureText(group.name).width + 8 * scale;
      context.font = `${12 * scale}px system-ui, sans-serif`;
      context.fillStyle = this.colours.faint;
      context.fillText(group.nodes.length.toLocaleString("en"), x + after, y - 7 * scale);
      context.restore();
    }
  }

  drawNames_() {
    const { context, scale } = this;
    const size = this.sprites.size;
    context.font = `${Math.min(13 * scale, Math.max(10 * scale, size / 6))}px system-ui, sans-serif`;
    context.textAlign = "center";
    context.textBaseline = "bottom";
    for (const block of this.placed.blocks) {
      this.eachVisible_(block, (index, x, y) => this.drawName_(index, x, y, size));
    }
    context.textAlign = "left";
  }

  drawName_(index, x, y, size) {
    const { context, scale } = this;
    let name = this.model.hosts[index];
    if (context.measureText(name).width > size - 2 * scale) name = name.match(/[0-9]+[^0-9]*$/)?.[0] ?? name;
    context.fillStyle =
      this.mask && !this.mask[index] ? this.colours.faint : this.colours.states[this.model.state(index)].ink;
    context.fillText(name, x + size / 2, y + size - 3 * scale, size - 2 * scale);
  }

  /** Draws nodes of a model whose state has changed. */
  update(model, nodes) {
    // Ignore another model, which is laid out when it is shown.
    if (!this.placed || model !== this.model) return;
    this.rings.add(nodes);
    if (nodes.length > MANY_CELLS || this.isNamed_()) {
      this.drawSoon();
      return;
    }
    for (const index of nodes) {
      const { x, y } = this.at_(index);
      const { size } = this.sprites;
      if (x <= -size || y <= -size || x >= this.screen.width || y >= this.screen.height) continue;
      paint.stamp(this.screen, this.picture_(index), size, x, y);
      this.context.putImageData(this.image, 0, 0, Math.max(0, x), Math.max(0, y), size, size);
    }
    this.markSoon();
  }

  // Returns the corner of a node's cell on the screen.
  at_(index) {
    const place = layout.cell(this.placed.blocks[this.groupOf[index]], this.positionOf[index], this.pitch);
    return { x: place.x - this.offset.x, y: place.y - this.offset.y };
  }

  /** Draws the marks of the upper canvas. */
  mark() {
    if (!this.placed) return;
    const frames = this.rings.recent().map((index) => ({ index, colour: this.colours.accent, width: 2, room: 3 }));
    const add = (index, colour, width, room) => index < this.model.size && frames.push({ index, colour, width, room });
    add(this.hovered, this.colours.text, 1, 1);
    add(this.selected, this.colours.text, 2.5, 2);
    if (document.activeElement === this.area) add(this.cursor, this.colours.accent, 3, 2);
    const places = frames.map((frame) => ({ ...frame, ...this.at_(frame.index) }));
    drawFrames(this.marks, places, this.sprites.size, this.scale);
  }

  /** Dims all nodes except those of a search; null for none. */
  highlight(mask) {
    this.mask = mask;
    this.drawSoon();
  }

  select(index) {
    this.selected = index;
    if (index !== undefined) {
      this.cursor = index;
      this.reveal_(index);
    }
    this.markSoon();
  }

  pan(dx, dy) {
    if (!this.placed) return;
    this.offset.x -= dx;
    this.offset.y -= dy;
    this.clamp_();
    this.tip.hidden = true;
    this.drawSoon();
  }

  /** Zooms by a factor around a point of the screen, or around the cursor. */
  zoom(factor, x = this.screen?.width / 2, y = this.screen?.height / 2) {
    if (!this.placed) return;
    const before = this.pitch;
    const exact = (this.exact_ ?? before) * factor;
    this.exact_ = Math.max(this.fitted.pitch, Math.min(LARGEST_CELL * this.scale, exact));
    this.pitch = Math.max(this.fitted.pitch, Math.round(this.exact_));
    if (this.pitch === before) return;
    // Keep the point under the pointer in its position; headings do not grow with the cells.
    const anchor = this.anchor_(x, y, before);
    this.zoomed = this.pitch > this.fitted.pitch;
    this.place_();
    const block = this.placed.blocks[anchor.group];
    this.offset.x = block.x + anchor.columns * this.pitch - x;
    this.offset.y = block.y + anchor.rows * this.pitch - y;
    this.clamp_();
    this.tip.hidden = true;
    this.drawSoon();
  }

  anchor_(x, y, pitch) {
    const [mapX, mapY] = [x + this.offset.x, y + this.offset.y];
    const found = layout.hit(this.placed.blocks, pitch, mapX, mapY);
    const block =
      found?.block ?? this.placed.blocks.findLast((b) => b.y <= mapY && b.x <= mapX) ?? this.placed.blocks[0];
    return { group: block.group, columns: (mapX - block.x) / pitch, rows: (mapY - block.y) / pitch };
  }

  fitAll() {
    this.zoomed = false;
    this.exact_ = undefined;
    this.resize();
  }

  reveal_(index) {
    if (!this.placed) return;
    const { x, y } = this.at_(index);
    const room = this.pitch * 2;
    if (x < 0) this.offset.x += x - room;
    if (x + this.pitch > this.screen.width) this.offset.x += x + this.pitch + room - this.screen.width;
    if (y < 0) this.offset.y += y - room;
    if (y + this.pitch > this.screen.height) this.offset.y += y + this.pitch + room - this.screen.height;
    this.clamp_();
    this.drawSoon();
  }

  nodeAt_(x, y) {
    if (!this.placed) return undefined;
    const found = layout.hit(
      this.placed.blocks,
      this.pitch,
      x * this.scale + this.offset.x,
      y * this.scale + this.offset.y,
    );
    return found ? this.groups[found.block.group].nodes[found.position] : undefined;
  }

  tap_(x, y, isTouch) {
    const index = this.nodeAt_(x, y);
    if (index === undefined) return;
    if (isTouch && this.pitch < TAPPED_CELL * this.scale) {
      this.zoom((TAPPED_CELL * 1.5 * this.scale) / this.pitch, x * this.scale, y * this.scale);
      return;
    }
    this.cursor = index;
    this.handlers.open(index);
  }

  hover_(x, y) {
    const index = x < 0 ? undefined : this.nodeAt_(x, y);
    if (index !== this.hovered) {
      this.hovered = index;
      this.markSoon();
    }
    this.tip.hidden = index === undefined;
    if (index === undefined) return;
    setText(this.tip, this.describe(index));
    const left = Math.min(x + 14, this.area.clientWidth - this.tip.offsetWidth - 4);
    const top = y + 18 + this.tip.offsetHeight > this.area.clientHeight ? y - this.tip.offsetHeight - 10 : y + 18;
    this.tip.style.transform = `translate(${Math.max(0, left)}px, ${Math.max(0, top)}px)`;
  }

  /** Returns a line about a node: `node7: drained, bad disk, for 3 h`. */
  describe(index) {
    const drain = this.model.drains.get(index);
    const parts = [`${this.model.hosts[index]}: ${describe(this.model.flags[index])}`];
    if (drain?.reason) parts.push(drain.reason);
    if (drain) parts.push(`for ${duration(this.handlers.now() - drain.timestamp)}`);
    return parts.join(" · ");
  }

  moveTo_(index) {
    this.cursor = index;
    this.reveal_(index);
    this.markSoon();
    this.handlers.announce(this.describe(index));
  }

  // Returns the next cell in a direction, over headings and gaps.
  step_(dx, dy) {
    const { x, y } = this.at_(this.cursor);
    const middle = this.pitch / 2;
    let [mapX, mapY] = [x + this.offset.x + middle, y + this.offset.y + middle];
    for (;;) {
      mapX += dx * this.pitch;
      mapY += dy * this.pitch;
      if (mapX < 0 || mapY < 0 || mapX >= this.placed.width || mapY >= this.placed.height) return undefined;
      const found = layout.hit(this.placed.blocks, this.pitch, mapX, mapY);
      if (found) return this.groups[found.block.group].nodes[found.position];
    }
  }

  /** Moves the cursor to the next node that needs attention, in the order of the map; direction is 1 or -1. */
  nextProblem(direction) {
    if (!this.placed) return;
    const all = this.groups.flatMap((group) => Array.from(group.nodes));
    const from = this.cursor === undefined ? -1 : all.indexOf(this.cursor);
    for (let i = 1; i <= all.length; ++i) {
      const index = all[(from + direction * i + all.length * 2) % all.length];
      if (this.model.state(index) > STATE_ALLOCATED && (!this.mask || this.mask[index])) {
        this.area.focus();
        this.moveTo_(index);
        return;
      }
    }
    this.handlers.announce("no node needs attention");
  }

  key_(event) {
    const arrows = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    const arrow = Object.hasOwn(arrows, event.key) ? arrows[event.key] : null;
    if (event.ctrlKey || event.metaKey || event.altKey || !this.placed || this.model.size === 0) return;
    if (arrow) {
      event.preventDefault();
      const next = this.cursor === undefined ? this.groups[0].nodes[0] : this.step_(...arrow);
      if (next !== undefined) this.moveTo_(next);
    } else if (event.key === "Enter" && this.cursor !== undefined) {
      event.preventDefault();
      this.handlers.open(this.cursor);
    } else if (event.key === "Home" || event.key === "End") {
      event.preventDefault();
      const nodes = this.groups[event.key === "Home" ? 0 : this.groups.length - 1].nodes;
      this.moveTo_(nodes[event.key === "Home" ? 0 : nodes.length - 1]);
    }
  }
}
