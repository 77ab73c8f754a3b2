// The keys of the page outside of text fields.

const isText = (element) =>
  element instanceof HTMLInputElement || element instanceof HTMLSelectElement || element instanceof HTMLTextAreaElement;

/** `actions` maps the value of KeyboardEvent.key to a function. Escape also works in text fields. */
export const start = (actions) => {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || event.defaultPrevented) return;
    if (document.querySelector("dialog[open]")) return;
    if (isText(event.target) && event.key !== "Escape") return;
    const action = actions.get(event.key);
    if (!action) return;
    event.preventDefault();
    action();
  });
};
