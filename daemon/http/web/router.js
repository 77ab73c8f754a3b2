// The fragment of the address: `#/VIEW/ARGUMENT?key=value`. It has all state of the page that a link should restore.

/** Returns {view, argument, params} of a fragment. */
export const parse = (fragment) => {
  const [path, query = ""] = fragment.replace(/^#?\/?/, "").split("?", 2);
  const slash = path.indexOf("/");
  const view = slash < 0 ? path : path.slice(0, slash);
  let argument = slash < 0 ? "" : path.slice(slash + 1);
  try {
    argument = decodeURIComponent(argument);
  } catch {
    argument = "";
  }
  return { view: view || "map", argument, params: Object.fromEntries(new URLSearchParams(query)) };
};

/** Returns the fragment of a place; empty parameters are left out. */
export const format = ({ view, argument = "", params = {} }) => {
  const query = new URLSearchParams(
    Object.entries(params).filter(([, value]) => value !== "" && value !== undefined),
  ).toString();
  return `#/${view}${argument ? `/${encodeURIComponent(argument)}` : ""}${query ? `?${query}` : ""}`;
};
