// Words of commands that people copy into a shell. Names come from outside, so they may contain anything.

/**
 * Returns a word as an argument of a command: in quotes where a shell would read more than a word, and never an option.
 */
export const quoted = (word) => {
  if (/^[A-Za-z0-9_.][A-Za-z0-9_.:@%+=,/-]*$/.test(word)) return word;
  const text = `'${word.replaceAll("'", "'\\''")}'`;
  return word.startsWith("-") ? `-- ${text}` : text;
};

/** Returns a host as the target of a command. A number alone would be a rank. */
export const hostTarget = (host) => (/^[0-9]+$/.test(host) ? `host:${host}` : quoted(host));
