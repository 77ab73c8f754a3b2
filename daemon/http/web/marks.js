// The marks above the cells of the map: rings around nodes that have just changed, and frames of the pointer, the keyboard
// and the selection.

// Time for which changed cells have rings, unless many change at once.
const RING_MS = 4000;
const MANY_RINGS = 200;

/** The nodes that have just changed. */
export class Rings {
  /** `ended` is called when rings have ended. */
  constructor(ended) {
    this.ended = ended;
    this.until = new Map();
  }

  clear() {
    this.until.clear();
  }

  add(nodes) {
    if (nodes.length > MANY_RINGS) return;
    const until = performance.now() + RING_MS;
    for (const index of nodes) this.until.set(index, until);
    if (this.until.size > MANY_RINGS) this.clear();
    setTimeout(this.ended, RING_MS + 50);
  }

  /** Returns the nodes that changed recently enough. */
  recent() {
    const now = performance.now();
    for (const [index, until] of this.until) if (until <= now) this.until.delete(index);
    return [...this.until.keys()];
  }
}

/** Draws frames {x, y, colour, width, room} around cells of this size; width and room are CSS pixels. */
export const drawFrames = (canvas, frames, size, scale) => {
  const context = canvas.getContext("2d");
  context.clearRect(0, 0, canvas.width, canvas.height);
  for (const { x, y, colour, width, room } of frames) {
    const out = room * scale;
    context.lineWidth = width * scale;
    context.strokeStyle = colour;
    context.strokeRect(x - out, y - out, size + 2 * out, size + 2 * out);
  }
};
