/**
 * A View: it shows one resource of the server, chosen by `?kind=`, and is live by one call. It does
 * not depend on whether it is notified or polls; for the demo, the corner of its frame names the
 * mode.
 */
import { watchResource } from "../../js/view/index.ts";
import { App } from "./parts/app.ts";

const kinds: Record<string, { title: string; uri: string; show: (data: never, into: HTMLElement) => void }> = {
  chart: { title: "Load", uri: "demo://load", show: chart },
  table: { title: "Machines", uri: "demo://machines", show: table },
  log: { title: "Log", uri: "demo://log", show: log },
};
const { title, uri, show } = kinds[new URLSearchParams(location.search).get("kind") ?? ""] ?? kinds.chart!;

const head = document.createElement("header");
head.innerHTML = "<b></b><span></span>";
head.firstElementChild!.textContent = title;
const body = document.createElement("div");
document.body.append(head, body);

const app = new App();
await app.hello();
const watch = watchResource(
  app,
  uri,
  ({ contents: [first] }) => {
    show(JSON.parse(first?.text ?? "null") as never, body);
    head.lastElementChild!.textContent = watch?.mode ?? "";
    parent.postMessage({ shown: uri }, "*");
  },
  { interval: 1000 },
);

function chart(points: number[], into: HTMLElement): void {
  const line = points.map((y, x) => `${x},${100 - y}`).join(" ");
  into.innerHTML = `<svg viewBox="0 0 59 100" preserveAspectRatio="none" role="img" aria-label="Load over the last minute"><polyline points="${line}"/></svg>`;
}

function table(rows: { name: string; load: number; state: string }[], into: HTMLElement): void {
  const before = [...into.querySelectorAll("td")].map((cell) => cell.textContent);
  const cells = rows.flatMap(({ name, load, state }) => [name, `${load} %`, state]);
  const element = document.createElement("table");
  for (let i = 0; i < cells.length; i += 3) {
    const row = element.insertRow();
    for (let j = i; j < i + 3; j++) {
      const cell = row.insertCell();
      cell.textContent = cells[j]!;
      if (before.length && before[j] !== cells[j]) cell.className = "changed";
    }
  }
  into.replaceChildren(element);
}

function log(lines: string[], into: HTMLElement): void {
  const element = document.createElement("pre");
  element.textContent = lines.slice(-9).reverse().join("\n");
  into.replaceChildren(element);
}
