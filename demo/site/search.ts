// Search over all pages: MiniSearch, over passages that the server cuts at headings. The index is fetched when the
// field first has focus. "/" goes to the field; the arrows choose, Enter opens, Escape leaves.

import MiniSearch from "minisearch";

type Passage = { id: number; url: string; page: string; title: string; text: string };

const field = document.querySelector<HTMLInputElement>("#site-search") as HTMLInputElement;
const list = document.querySelector<HTMLUListElement>("#site-found") as HTMLUListElement;
const count = document.querySelector<HTMLElement>("#site-count") as HTMLElement;
const most = 12;

let loading: Promise<MiniSearch<Passage>> | undefined;
let selected = -1;

function load(): Promise<MiniSearch<Passage>> {
  loading ??= fetch("/docs/search.json")
    .then((response) => response.json())
    .then((passages: Passage[]) => {
      const index = new MiniSearch<Passage>({
        fields: ["title", "page", "text"],
        storeFields: ["url", "page", "title", "text"],
        searchOptions: { boost: { title: 4, page: 2 }, prefix: true, fuzzy: 0.15, combineWith: "AND" },
      });
      index.addAll(passages);
      return index;
    });
  return loading;
}

/** The words around the first that was found. */
function excerpt(text: string, terms: string[]): string {
  const at = Math.min(...terms.map((term) => text.toLowerCase().indexOf(term)).filter((place) => place >= 0));
  if (!Number.isFinite(at)) return text.slice(0, 110);
  const from = Math.max(0, text.lastIndexOf(" ", Math.max(0, at - 40)));
  return (from > 0 ? "…" : "") + text.slice(from, from + 110);
}

function option(result: { url: string; page: string; title: string; text: string; terms: string[] }, at: number) {
  const item = document.createElement("li");
  item.id = `site-found-${at}`;
  item.role = "option";
  item.ariaSelected = "false";
  item.dataset.href = result.url;
  const title = document.createElement("b");
  title.textContent = result.title === result.page ? result.page : `${result.page} › ${result.title}`;
  const words = document.createElement("span");
  words.textContent = excerpt(result.text, result.terms);
  item.append(title, words);
  item.addEventListener("click", () => go(item));
  return item;
}

async function search() {
  const query = field.value.trim();
  if (!query) return close();
  const index = await load();
  if (field.value.trim() !== query) return;
  const results = index.search(query).slice(0, most);
  list.replaceChildren(...results.map((result, at) => option(result as never, at)));
  count.textContent = results.length ? `${results.length} found` : "Nothing found";
  list.hidden = results.length === 0;
  field.ariaExpanded = String(!list.hidden);
  select(results.length ? 0 : -1);
}

function select(at: number) {
  selected = at;
  [...list.children].forEach((item, i) => {
    item.ariaSelected = String(i === at);
    if (i === at) item.scrollIntoView({ block: "nearest" });
  });
  if (at < 0) field.removeAttribute("aria-activedescendant");
  else field.setAttribute("aria-activedescendant", `site-found-${at}`);
}

function close() {
  list.hidden = true;
  list.replaceChildren();
  count.textContent = "";
  field.ariaExpanded = "false";
  select(-1);
}

function go(item: Element | undefined) {
  const to = (item as HTMLElement | undefined)?.dataset.href;
  if (!to) return;
  close();
  field.blur();
  location.assign(to);
}

field.addEventListener("focus", () => void load());
field.addEventListener("input", () => void search());
field.addEventListener("keydown", (event) => {
  const n = list.children.length;
  if (event.key === "ArrowDown" && n) select((selected + 1) % n);
  else if (event.key === "ArrowUp" && n) select((selected + n - 1) % n);
  else if (event.key === "Enter") go(list.children[selected]);
  else if (event.key === "Escape") {
    field.value = "";
    close();
    field.blur();
  } else return;
  event.preventDefault();
});
field.addEventListener("blur", (event) => {
  if (!list.contains(event.relatedTarget as Node | null)) close();
});
list.addEventListener("mousedown", (event) => event.preventDefault());
addEventListener("keydown", (event) => {
  const typing = /^(input|textarea|select)$/i.test((event.target as HTMLElement).tagName ?? "");
  if (event.key !== "/" || typing || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  field.focus();
});
