// Translates mouse, touch and wheel on an element to pan, zoom, tap and hover. Positions are CSS pixels within the
// element.

const TAP_DISTANCE = 6;
const WHEEL_STEP = 0.0015;

/** handlers: pan(dx, dy), zoom(factor, x, y), tap(x, y, isTouch), hover(x, y), leave(). */
export const attach = (element, handlers) => {
  const pointers = new Map();
  let moved = false;
  let spread = 0;

  const placeOf = (event) => {
    const box = element.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };
  const spreadOf = () => {
    const [a, b] = [...pointers.values()];
    return { distance: Math.hypot(a.x - b.x, a.y - b.y), x: (a.x + b.x) / 2, y: (a.y + b.y) / 2 };
  };

  element.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    element.setPointerCapture(event.pointerId);
    const place = placeOf(event);
    pointers.set(event.pointerId, { ...place, startX: place.x, startY: place.y });
    if (pointers.size === 1) moved = false;
    if (pointers.size === 2) spread = spreadOf().distance;
  });

  element.addEventListener("pointermove", (event) => {
    const place = placeOf(event);
    const pointer = pointers.get(event.pointerId);
    if (!pointer) {
      if (event.pointerType !== "touch") handlers.hover(place.x, place.y);
      return;
    }
    const [dx, dy] = [place.x - pointer.x, place.y - pointer.y];
    Object.assign(pointer, place);
    if (pointers.size === 2) {
      const now = spreadOf();
      moved = true;
      handlers.pan(dx / 2, dy / 2);
      if (spread > 0 && now.distance > 0) handlers.zoom(now.distance / spread, now.x, now.y);
      spread = now.distance;
      return;
    }
    if (!moved && Math.hypot(place.x - pointer.startX, place.y - pointer.startY) < TAP_DISTANCE) return;
    moved = true;
    handlers.pan(dx, dy);
  });

  const end = (event) => {
    const pointer = pointers.get(event.pointerId);
    if (!pointer) return;
    pointers.delete(event.pointerId);
    if (event.type === "pointerup" && !moved) handlers.tap(pointer.x, pointer.y, event.pointerType === "touch");
    if (pointers.size > 0) moved = true; // The rest of a pinch is no tap.
  };
  element.addEventListener("pointerup", end);
  element.addEventListener("pointercancel", end);
  element.addEventListener("pointerleave", () => handlers.leave());

  element.addEventListener(
    "wheel",
    (event) => {
      event.preventDefault();
      if (event.shiftKey) {
        handlers.pan(-event.deltaX - event.deltaY, 0);
        return;
      }
      const place = placeOf(event);
      handlers.zoom(Math.exp(-event.deltaY * WHEEL_STEP), place.x, place.y);
    },
    { passive: false },
  );
};
