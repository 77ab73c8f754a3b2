// The numbers above all views: nodes by state, each a switch that searches for them; and the same for screen readers.
import { badge, el, number, replace, setText } from "./dom.js";
import { STATES } from "./states.js";

export class Summary {
  /** search(query) sets the search. */
  constructor(element, search) {
    this.counts = STATES.map(() => el("span", { className: "value" }));
    this.buttons = STATES.map((state, i) =>
      el(
        "button",
        {
          type: "button",
          className: `stat stat-${state.name}`,
          title: state.text,
          on: { click: () => search(this.query === state.name ? "" : state.name) },
        },
        badge(state),
        this.counts[i],
        el("span", { className: "label" }, state.name),
      ),
    );
    this.total = el("span", { className: "value" });
    this.query = "";
    replace(
      element,
      el("div", { className: "stat total" }, this.total, el("span", { className: "label" }, "nodes")),
      this.buttons,
    );
  }

  draw(model, query) {
    this.query = query;
    setText(this.total, number(model.size));
    STATES.forEach((state, i) => {
      const count = model.counts[i];
      setText(this.counts[i], number(count));
      this.buttons[i].classList.toggle("zero", count === 0);
      this.buttons[i].setAttribute("aria-pressed", String(query === state.name));
    });
  }
}

/** The states in a sentence: `16,384 nodes: 16,380 free, 4 drained`. */
export const sentence = (model) =>
  `${number(model.size)} nodes: ${STATES.map((state, i) => [model.counts[i], state.name])
    .filter(([count]) => count > 0)
    .map(([count, name]) => `${number(count)} ${name}`)
    .join(", ")}`;
