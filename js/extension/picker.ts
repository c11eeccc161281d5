/**
 * dist/extension/pick.js: lets a person point at a part of the page, in the extension's isolated
 * world. The browser runs it for a click on "Share a part…", and not before. It adds nothing to the
 * document, and takes the person's clicks and keys from it until one click has picked a part, or
 * Escape has ended it. A page's own events pick nothing.
 */
import { blocksAround, ruleOf, stepsTo } from "../shown/pick.ts";
import { fromPicker } from "./messages.ts";
import { onClosed } from "./ports.ts";

const world = globalThis as { pagewirePicker?: AbortController };
world.pagewirePicker?.abort();
const ending = (world.pagewirePicker = new AbortController());
const port = chrome.runtime.connect({ name: fromPicker });
onClosed(port, () => ending.abort());

function end(): void {
  ending.abort();
  port.disconnect();
}

function act(event: Event): void {
  if (!event.isTrusted) return;
  const { type } = event;
  const isKey = type.startsWith("key");
  if (isKey && (event as KeyboardEvent).key !== "Escape") return;
  event.stopImmediatePropagation();
  event.preventDefault();
  const target = event.target instanceof Element ? event.target : undefined;
  if (type === "pointermove") {
    const [block] = target ? blocksAround(target) : [];
    if (block) port.postMessage({ place: stepsTo(block) });
    return;
  }
  if (type === "keyup") end(); // not before: the page would get it
  if (type !== "click" || !target) return;
  port.postMessage({ rule: ruleOf(document, target) ?? null });
  ending.abort(); // the worker ends the port
}

const types =
  "pointermove mousemove pointerdown pointerup mousedown mouseup click dblclick auxclick contextmenu keydown keyup";
for (const type of types.split(" "))
  addEventListener(type, act, { capture: true, passive: false, signal: ending.signal });
