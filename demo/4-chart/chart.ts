/**
 * The page: the wind at a harbour, measured sixty times a second, and drawn once a frame of the
 * screen.
 */
export {};

const kept = 240;
const points: number[] = [];
let knots = 14;
let gust = 14;
let changes = 0;

// Pagewire: the page notifies of each change, and knows nothing of rates. An agent gets at most one
// message in
// `minUpdateInterval`; the last change always arrives, and none is sent without a watcher.

const context = navigator.modelContext;
const windURI = new URL("wind", location.href).href;

function register(minUpdateInterval: number): void {
  context.registerResource({
    uri: windURI,
    name: "wind",
    title: "Wind",
    description: "The wind at the pier now, in knots, and the strongest gust of the last measurements.",
    mimeType: "application/json",
    annotations: { subscribeHint: true },
    minUpdateInterval,
    read: () => JSON.stringify({ knots: round(knots), gust: round(gust), measured: changes }),
  });
}

function measure(): void {
  const calm = 14 + 6 * Math.sin(changes / 400);
  knots = Math.max(0, knots + (calm - knots) * 0.03 + 1.6 * (Math.random() - 0.5));
  points.push(knots);
  if (points.length > kept) points.shift();
  gust = Math.max(...points);
  changes++;
  context.notifyResourceUpdated(windURI);
}

// The chart.

const interval = document.getElementById("interval") as HTMLSelectElement;
const run = document.getElementById("run") as HTMLButtonElement;
const line = document.getElementById("line")!;
const area = document.getElementById("area")!;
const text = (id: string, value: string | number) => (document.getElementById(id)!.textContent = String(value));
const perSecond = 60;

/** Number of measurements that are due and not done yet. */
let due = 0;
let last = performance.now();
let running = !matchMedia("(prefers-reduced-motion: reduce)").matches;

function tick(): void {
  const now = performance.now();
  due += running ? (Math.min(now - last, 1000) * perSecond) / 1000 : 0; // a hidden tab does not catch up
  last = now;
  for (; due >= 1; due--) measure();
}

function draw(): void {
  const drawn = points.map((y, x) => `${x},${(120 - y * 4.5).toFixed(1)}`).join(" ");
  line.setAttribute("points", drawn);
  area.setAttribute("points", `0,120 ${drawn} ${kept},120`);
  const { reads } = pagewire.stats();
  text("knots", round(knots).toFixed(1));
  text("gust", round(gust).toFixed(1));
  text("changes", changes.toLocaleString("en"));
  text("reads", reads.toLocaleString("en"));
  requestAnimationFrame(draw);
}

function round(n: number): number {
  return Math.round(n * 10) / 10;
}

function show(): void {
  run.textContent = running ? "Pause" : "Start";
}

interval.addEventListener("change", () => {
  context.unregisterResource(windURI);
  register(Number(interval.value));
});
run.addEventListener("click", () => {
  running = !running;
  show();
});

register(Number(interval.value));
for (let i = 0; i < kept; i++) measure();
changes = 0;
show();
setInterval(tick, 10);
draw();
