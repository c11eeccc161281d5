// The theme is the system's until a person has chosen one, which is then kept. A script of its own, which blocks, so
// that the first frame has the right colours.

const key = "pagewire-theme";
const root = document.documentElement;

function stored(): string | null {
  try {
    return localStorage.getItem(key);
  } catch {
    return null; // storage may be off
  }
}

const chosen = stored();
if (chosen === "light" || chosen === "dark") root.dataset.theme = chosen;

root.classList.add("scripted"); // the list of pages is behind a button, in a narrow window

addEventListener("DOMContentLoaded", () => {
  const menu = document.querySelector("#site-menu");
  menu?.addEventListener("click", () => {
    menu.ariaExpanded = String(menu.ariaExpanded !== "true");
  });
  document.querySelector("#site-theme")?.addEventListener("click", () => {
    const dark = root.dataset.theme
      ? root.dataset.theme === "dark"
      : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    try {
      localStorage.setItem(key, root.dataset.theme);
    } catch {
      // it lasts as long as the page
    }
  });
});
