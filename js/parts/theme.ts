// The theme is the system's until a person chooses one. The choice is kept.

export type Theme = "dark" | "light";

const key = "pagewire-theme";
const dark = matchMedia("(prefers-color-scheme: dark)");

function chosen(): Theme | undefined {
  try {
    const theme = localStorage.getItem(key);
    return theme === "dark" || theme === "light" ? theme : undefined;
  } catch {
    return undefined; // storage may be off
  }
}

export function theme(): Theme {
  return document.documentElement.dataset.theme === "dark" ? "dark" : "light";
}

export function startTheme(changed: () => void) {
  const set = () => (document.documentElement.dataset.theme = chosen() ?? (dark.matches ? "dark" : "light"));
  set();
  dark.addEventListener("change", () => {
    set();
    changed();
  });
}

export function toggleTheme(changed: () => void) {
  document.documentElement.dataset.theme = theme() === "dark" ? "light" : "dark";
  try {
    localStorage.setItem(key, theme());
  } catch {
    // the choice lasts as long as the page
  }
  changed();
}
