// Random changes of a page, each by an event "step". The seed makes them the same each time.
let seed = globalThis.seed;
const random = (n) => (seed = (seed * 1103515245 + 12345) & 0x7fffffff) % n;
const one = (list) => list[random(list.length)];
const any = () => one(document.body.querySelectorAll("*:not(script, style)"));
const toggle = (name, value) => (e) => (e.style[name] = e.style[name] ? "" : value);
const steps = [
  toggle("display", "none"),
  toggle("visibility", "hidden"),
  toggle("opacity", "0"),
  toggle("color", "#fff"),
  toggle("fontSize", "0"),
  (e) => (e.hidden = !e.hidden),
  (e) => e.append("text " + random(100)),
  (e) =>
    e.prepend(
      document.createElement(
        one(["p", "b", "li", "h3", "button", "input", "td", "label", "img", "br", "details", "pre"]),
      ),
    ),
  (e) => e.parentElement !== document.body && e.remove(),
  (e, other = any()) => e.contains(other) || e.append(other),
  (e) => e.firstChild?.nodeType === 3 && (e.firstChild.data = "changed " + random(100)),
  (e) =>
    e.setAttribute(
      "role",
      one(["button", "row", "cell", "link", "main", "listitem", "checkbox", "none", "img", "heading"]),
    ),
  (e) => e.removeAttribute("role"),
  (e) => e.setAttribute("aria-label", "label " + random(9)),
  (e) => e.setAttribute("aria-selected", "true"),
  (e) => (e.title = "title"),
  (e) => /^(input|textarea)$/.test(e.localName) && e.type !== "file" && (e.value = "v" + random(9)),
  (e) => e.replaceChildren(...e.cloneNode(true).childNodes),
  (e) => e.toggleAttribute("open"),
  (e) => (e.className = "x" + random(3)),
  (e) => {
    if (!/^(div|span|p|section|main|article)$/.test(e.localName) || e.shadowRoot) return;
    e.attachShadow({ mode: "open" }).innerHTML = "<p>shadow</p><slot></slot>";
    e.append(" "); // no observer tells of the tree itself
  },
  (e) => e.shadowRoot && (e.shadowRoot.firstChild.textContent = "shadow " + random(99)),
];
addEventListener("step", () => {
  const step = one(steps);
  const e = any();
  globalThis.last = step + " on " + e.outerHTML.slice(0, 200);
  step(e);
});
