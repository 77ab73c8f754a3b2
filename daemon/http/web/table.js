// The map as a table: the number of nodes of each group in each state, and their names. For screen readers, and to copy
// from.
import { badge, el, number, replace, table } from "./dom.js";
import { hostsText } from "./eventtext.js";
import { hostsLink } from "./rows.js";
import { STATES } from "./states.js";

/** Returns rows [{group, state, nodes}] of groups as layout.groups() gives them; `mask` leaves nodes out. */
export const rows = (model, groups, mask) =>
  groups.flatMap((group) => {
    const found = STATES.map((state) => ({ group: group.name, state, nodes: [] }));
    for (const index of group.nodes) if (!mask || mask[index]) found[model.state(index)].nodes.push(index);
    return found.filter(({ nodes }) => nodes.length > 0);
  });

/** Draws the table into an element. */
export const render = (element, model, groups, mask) => {
  const found = rows(model, groups, mask);
  if (found.length === 0) {
    replace(
      element,
      el("p", { className: "faint empty" }, mask ? "No node matches the search." : "There are no nodes."),
    );
    return;
  }
  const hasNames = groups.some((group) => group.name !== "");
  replace(
    element,
    table(
      [...(hasNames ? ["Group"] : []), "State", "Nodes", "Hosts"],
      found.map(({ group, state, nodes }) =>
        el(
          "tr",
          {},
          hasNames ? el("th", { scope: "row" }, group) : null,
          el("td", {}, badge(state), ` ${state.label}`),
          el("td", { className: "number", data: { sort: nodes.length } }, number(nodes.length)),
          el("td", { className: "wrap" }, hostsLink(model, hostsText(model, nodes))),
        ),
      ),
      "Nodes by group and state",
    ),
  );
};
