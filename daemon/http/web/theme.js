// The theme, light or dark: that of the system, or the user's choice with the button.

const KEY = "resourced-theme";
const NEXT = new Map([
  ["auto", "dark"],
  ["dark", "light"],
  ["light", "auto"],
]);
const GLYPHS = new Map([
  ["auto", "◐"],
  ["dark", "☾"],
  ["light", "☀"],
]);

const chosen = () => {
  const stored = localStorage.getItem(KEY);
  return NEXT.has(stored) ? stored : "auto";
};

const apply = (button) => {
  const theme = chosen();
  if (theme === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  button.textContent = GLYPHS.get(theme);
  button.setAttribute("aria-label", `Theme: ${theme === "auto" ? "as the system" : theme}`);
};

/** Makes a button switch the theme; calls changed() after each change. Returns a function that switches, too. */
export const start = (button, changed) => {
  const next = () => {
    localStorage.setItem(KEY, NEXT.get(chosen()));
    apply(button);
    changed();
  };
  button.addEventListener("click", next);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", changed);
  apply(button);
  return next;
};
