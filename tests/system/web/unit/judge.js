// resourcectl as the reference for text forms: the output of the daemon's reader, or null if it refuses the text.
import { execFileSync } from "node:child_process";

export const resourcectl = (...args) => {
  try {
    return execFileSync(process.env.RESOURCECTL, args, { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trimEnd();
  } catch {
    return null;
  }
};

/** A generator of numbers below 2^32, whose sequence depends only on the seed. */
export const random = (seed) => () => {
  seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
  return seed;
};
