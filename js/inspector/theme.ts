// The theme is the system's until a person has chosen one, which is then kept.

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

function set(theme: Theme) {
  document.documentElement.dataset.theme = theme;
}

export function startTheme(changed: () => void) {
  set(chosen() ?? (dark.matches ? "dark" : "light"));
  dark.addEventListener("change", () => {
    if (chosen()) return;
    set(dark.matches ? "dark" : "light");
    changed();
  });
}

export function toggleTheme() {
  set(theme() === "dark" ? "light" : "dark");
  try {
    localStorage.setItem(key, theme());
  } catch {
    // it lasts as long as the page
  }
}
