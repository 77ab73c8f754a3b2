// The numbers above all views: nodes by state, each a switch that searches for them; and the same for screen readers.
import { badge, el, number, replace, setText } from "./dom.js";
import {
  COUNTED,
  DRAINED_OFFLINE,
  DRAINING,
  DRAINING_OFFLINE,
  STATES,
  STATE_ALLOCATED,
  STATE_DRAINED,
  countOf,
} from "./states.js";

// The look of nodes that are not online, for each state that includes it.
const OFFLINE_OF = new Map([
  [DRAINING, DRAINING_OFFLINE],
  [STATE_DRAINED, DRAINED_OFFLINE],
]);

const queryOf = (state) => `state:${state.name}`;

// Returns the allocated share of cores and gpus, in short (`cores 83%`) and exactly.
const useOf = ({ used, total }) =>
  Object.keys(total)
    .filter((kind) => total[kind] > 0)
    .map((kind) => ({
      short: `${kind} ${Math.floor((100 * used[kind]) / total[kind])}%`,
      exact: `${number(used[kind])} of ${number(total[kind])} ${kind}`,
    }));

export class Summary {
  /** search(query) sets the search. */
  constructor(element, search) {
    this.states = COUNTED.map((look) => ({
      look,
      state: STATES[look],
      value: el("span", { className: "value" }),
      label: el("span", { className: "label" }),
    }));
    for (const shown of this.states) {
      const { state, value, label } = shown;
      shown.button = el(
        "button",
        {
          type: "button",
          className: `stat stat-${state.name}`,
          title: state.text,
          on: { click: () => search(this.query === queryOf(state) ? "" : queryOf(state)) },
        },
        badge(state),
        value,
        label,
      );
    }
    this.total = el("span", { className: "value" });
    this.use = el("span", { className: "label use", id: "use" });
    this.query = "";
    replace(
      element,
      el("div", { className: "stat total" }, this.total, el("span", { className: "label" }, "nodes"), this.use),
      this.states.map(({ button }) => button),
    );
  }

  draw(model, query) {
    this.query = query;
    setText(this.total, number(model.size));
    const use = model.ledgerKnown ? useOf(model) : [];
    setText(this.use, use.map(({ short }) => short).join(" · "));
    this.use.title = use.length > 0 ? `Allocated: ${use.map(({ exact }) => exact).join(", ")}` : "";
    for (const { look, state, value, label, button } of this.states) {
      const count = countOf(model.counts, look);
      const offline = OFFLINE_OF.has(look) ? model.counts[OFFLINE_OF.get(look)] : 0;
      setText(value, number(count));
      setText(label, offline > 0 ? `${state.name}, ${number(offline)} offline` : state.name);
      button.classList.toggle("zero", count === 0);
      button.setAttribute("aria-pressed", String(query === queryOf(state) || query === state.name));
    }
  }
}

/** Returns the states in a sentence: `16,384 nodes: 16,380 avail (12 allocated), 4 drained`. */
export const sentence = (model) => {
  const allocated = model.counts[STATE_ALLOCATED];
  const parts = COUNTED.filter((look) => look !== STATE_ALLOCATED)
    .map((look) => [countOf(model.counts, look), STATES[look].name])
    .filter(([count]) => count > 0)
    .map(([count, name]) => {
      const use = name === "avail" && allocated > 0 ? ` (${number(allocated)} allocated)` : "";
      return `${number(count)} ${name}${use}`;
    });
  return `${number(model.size)} nodes: ${parts.join(", ")}`;
};
