// Pictures of the cells. Each state has a colour and a pattern, drawn once for a cell size; a map is put together by
// copying their pixels, which costs by the pixels of the screen instead of by calls for each node.
import {
  AVAIL,
  DRAINED_OFFLINE,
  DRAINING,
  DRAINING_OFFLINE,
  OFFLINE,
  STATES,
  STATE_ALLOCATED,
  STATE_DRAINED,
  STATE_EXCLUDED,
  STATE_TORPID,
  isDrainedOffline,
} from "./states.js";

/** Returns the colours of the style sheet for the present theme. */
export const palette = () => {
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(`--${name}`).trim();
  return {
    background: colour("map"),
    text: colour("text"),
    faint: colour("faint"),
    accent: colour("accent"),
    states: STATES.map(({ name }) => ({ fill: colour(`state-${name}`), ink: colour(`ink-${name}`) })),
  };
};

/** Returns the gap between cells of this pitch. */
export const gapOf = (pitch) => (pitch < 3 ? 0 : pitch < 12 ? 1 : pitch < 28 ? 2 : 3);

// Sizes from which a pattern has room for lines, and for dots.
const PATTERN_SIZE = 5;
const DOT_SIZE = 9;

const line = (context, size, ...points) => {
  context.beginPath();
  points.forEach(([x, y], i) =>
    i % 2 === 0 ? context.moveTo(x * size, y * size) : context.lineTo(x * size, y * size),
  );
  context.stroke();
};

const cross = (c, size) => line(c, size, [0.24, 0.24], [0.76, 0.76], [0.76, 0.24], [0.24, 0.76]);

const PATTERNS = new Map([
  [AVAIL, () => {}],
  [
    STATE_ALLOCATED,
    (c, size) => {
      if (size >= DOT_SIZE) c.fillRect(size * 0.36, size * 0.36, size * 0.28, size * 0.28);
    },
  ],
  [
    DRAINING,
    (c, size) => {
      c.beginPath();
      c.moveTo(0, 0);
      c.lineTo(size, size);
      c.lineTo(0, size);
      c.fill();
    },
  ],
  [STATE_DRAINED, (c, size) => line(c, size, [0.2, 0.8], [0.8, 0.2])],
  [OFFLINE, cross],
  [DRAINING_OFFLINE, cross],
  [DRAINED_OFFLINE, cross],
  [STATE_TORPID, (c, size) => line(c, size, [0.2, 0.38], [0.8, 0.38], [0.2, 0.64], [0.8, 0.64])],
  [STATE_EXCLUDED, (c, size) => line(c, size, [0.28, 0.5], [0.72, 0.5])],
]);

const draw = (context, state, size, { fill, ink }, isNamed) => {
  context.fillStyle = fill;
  if (state === STATE_EXCLUDED) {
    // Draw a hollow cell: the node is not used.
    const edge = Math.max(1, Math.round(size / 10));
    context.fillRect(0, 0, size, size);
    if (size > 2 * edge) context.clearRect(edge, edge, size - 2 * edge, size - 2 * edge);
  } else {
    context.fillRect(0, 0, size, size);
  }
  context.fillStyle = ink;
  context.strokeStyle = ink;
  context.lineWidth = Math.max(1, size / (isNamed ? 12 : 7));
  context.lineCap = "round";
  if (isNamed) {
    // The name is below the pattern.
    context.save();
    context.translate(size * 0.25, size * 0.12);
    PATTERNS.get(state)(context, size / 2);
    context.restore();
  } else if (size >= PATTERN_SIZE) PATTERNS.get(state)(context, size);
  // In tiny cells offline nodes have a hole, drained ones that are offline a corner, and draining ones two halves.
  else if (state === OFFLINE && size >= 3) context.fillRect(1, 1, size - 2, size - 2);
  else if (isDrainedOffline(state)) context.fillRect(0, 0, Math.ceil(size / 2), Math.ceil(size / 2));
  else if (state === DRAINING && size >= 2) context.fillRect(0, Math.ceil(size / 2), size, size);
};

/**
 * Returns the cells of all states, then all of them faded, as pixels of `size` times `size`; with room for a name if
 * `isNamed`.
 */
export const sprites = (size, colours, isNamed) => {
  const canvas = document.createElement("canvas");
  canvas.width = size;
  canvas.height = size;
  const context = canvas.getContext("2d", { willReadFrequently: true });
  const pictures = [];
  for (const alpha of [1, 0.16]) {
    STATES.forEach((_, state) => {
      context.globalAlpha = 1;
      context.clearRect(0, 0, size, size);
      draw(context, state, size, colours.states[state], isNamed);
      // The background shows through faded cells and holes.
      const image = context.getImageData(0, 0, size, size);
      context.clearRect(0, 0, size, size);
      context.fillStyle = colours.background;
      context.fillRect(0, 0, size, size);
      const behind = context.getImageData(0, 0, size, size).data;
      for (let i = 0; i < image.data.length; i += 4) {
        const share = (image.data[i + 3] / 255) * alpha;
        for (let c = 0; c < 3; ++c)
          image.data[i + c] = Math.round(image.data[i + c] * share + behind[i + c] * (1 - share));
        image.data[i + 3] = 255;
      }
      pictures.push(new Uint32Array(image.data.buffer));
    });
  }
  return { size, pictures };
};

/** Returns a colour as a pixel. */
export const pixel = (colour) => {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = 1;
  const context = canvas.getContext("2d");
  context.fillStyle = colour;
  context.fillRect(0, 0, 1, 1);
  return new Uint32Array(context.getImageData(0, 0, 1, 1).data.buffer)[0];
};

/** Copies a picture to (x, y) of a screen {pixels, width, height}; parts outside are cut off. */
export const stamp = (screen, picture, size, x, y) => {
  const left = Math.max(0, -x);
  const right = Math.min(size, screen.width - x);
  const bottom = Math.min(size, screen.height - y);
  for (let row = Math.max(0, -y); row < bottom; ++row) {
    const from = row * size;
    const to = (y + row) * screen.width + x;
    for (let column = left; column < right; ++column) screen.pixels[to + column] = picture[from + column];
  }
};
