// Times and durations as text. Times are seconds since 1970, as in the payloads of the daemon.

const two = (n) => String(n).padStart(2, "0");

/** Returns `2026-11-22 21:05:09` in the time zone of the browser, rounded to seconds as the times of drains. */
export const stamp = (seconds) => {
  const d = new Date(Math.round(seconds) * 1000);
  return `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())} ${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}`;
};

/** Returns the time as text for an input of type datetime-local. */
export const localInput = (seconds) => stamp(seconds).replace(" ", "T");

/** Returns the time of day if it is on the day of `now`, otherwise date and time without seconds. */
export const shortStamp = (seconds, now) => {
  const full = stamp(seconds);
  return full.slice(0, 10) === stamp(now).slice(0, 10) ? full.slice(11) : full.slice(5, 16);
};

const UNITS = [
  ["d", 86400],
  ["h", 3600],
  ["min", 60],
  ["s", 1],
];

/** Returns a duration in its two largest units: `3 d 4 h`. */
export const duration = (seconds) => {
  let rest = Math.max(0, Math.floor(seconds));
  for (let i = 0; i < UNITS.length; ++i) {
    const [name, size] = UNITS[i];
    if (rest < size) continue;
    const whole = Math.floor(rest / size);
    rest -= whole * size;
    if (i + 1 === UNITS.length) return `${whole} ${name}`;
    const [next, nextSize] = UNITS[i + 1];
    const part = Math.floor(rest / nextSize);
    return part > 0 && i < 2 ? `${whole} ${name} ${part} ${next}` : `${whole} ${name}`;
  }
  return "0 s";
};
