/**
 * The agent, as the person sees it. All of its state is in the document, for tests too:
 *
 *   <html data-agent="connecting|subscribed|error">
 *   #steps li[data-kind="connected|listed|read|subscribed"]            the agent's steps, each with its latest state
 *   #resources li[data-uri][data-reads][data-updates]                  and .preview: the text of the last read
 *   #resources li[data-stale]                                          it has changed since the last read
 *   #live-value[data-uri]                                              the whole text of the selected resource
 *   #tools li[data-tool][data-calls][data-failed]                      and output: the result of the last call
 *   #notifications li[data-kind="updated|list_changed"][data-uri][data-at]   newest first
 *   #messages li[data-direction="sent|received"][data-method]                newest first
 *
 * data-at is `performance.now()` at the time of arrival.
 */
import type { JSONRPCMessage, Resource, Tool } from "@modelcontextprotocol/client";
import { changed, pretty } from "../../../js/parts/text.ts";
import type { Era, Value } from "./session.ts";
import type { Direction } from "./tap.ts";

/** Lists keep this many entries; older ones are only counted. */
const KEPT = 200;

/** A listed resource and its line. */
interface Row {
  item: HTMLLIElement;
  button: HTMLButtonElement;
  preview: HTMLElement;
  count: HTMLElement;
  /** The text shown of the last read, and the part that differs from the read before. */
  text: string;
  change: { from: number; to: number };
  reads: number;
  updates: number;
}

export class View {
  /** The person picks a protocol version, or connects again. */
  onEra: (era: Era) => void = () => {};
  /** The person lets the agent call a tool, or read a resource. */
  onCall: (tool: string, input: object) => void = () => {};
  onRead: (uri: string) => void = () => {};

  readonly #root = document.documentElement;
  readonly #steps = part("steps");
  readonly #trouble = part("trouble");
  readonly #resources = part("resources");
  readonly #heading = part("live-heading");
  readonly #value = part("live-value");
  readonly #again = part("read-again");
  readonly #tools = part("tools");
  readonly #notifications = new Feed(part("notifications"), part("notification-count"));
  readonly #messages = new Feed(part("messages"), part("message-count"));
  readonly #rows = new Map<string, Row>();
  /** Methods of unanswered requests, by direction and id, so that an answer can show its request's method. */
  readonly #asked = new Map<string, string>();
  #selected = "";
  #era: Era = "legacy";

  constructor() {
    for (const radio of document.querySelectorAll<HTMLInputElement>("input[name=era]")) {
      radio.addEventListener("change", () => this.onEra(radio.value as Era));
    }
    part("reconnect").addEventListener("click", () => this.onEra(this.#era));
    this.#again.addEventListener("click", () => this.onRead(this.#selected));
  }

  /** Starts over, for a new session. */
  reset(era: Era): void {
    this.#era = era;
    this.#root.dataset.agent = "connecting";
    for (const radio of document.querySelectorAll<HTMLInputElement>("input[name=era]"))
      radio.checked = radio.value === era;
    this.#trouble.hidden = true;
    this.#steps.replaceChildren();
    this.#resources.replaceChildren();
    this.#rows.clear();
    this.#tools.replaceChildren();
    this.#notifications.clear();
    this.#messages.clear();
    this.#asked.clear();
    this.#selected = "";
    this.#showValue();
  }

  // The agent's actions.

  connected(version: string, server: string): void {
    const step = this.#step("connected", "Connected", `over MCP ${version}`);
    step.dataset.version = version;
    step.title = `to ${server}`;
  }

  listed(resources: Resource[]): void {
    for (const [uri, row] of this.#rows) {
      if (resources.some((resource) => resource.uri === uri)) continue;
      row.item.remove();
      this.#rows.delete(uri);
    }
    for (const resource of resources) {
      if (!this.#rows.has(resource.uri)) this.#rows.set(resource.uri, this.#addRow(resource));
    }
    this.#step("listed", "Listed", count(resources.length, "resource"));
    this.#countRead();
    if (!this.#rows.has(this.#selected)) this.#select(resources[0]?.uri ?? "");
  }

  /** Shows the page's own tools. */
  offered(tools: Tool[]): void {
    for (const item of [...this.#tools.children] as HTMLElement[])
      if (!tools.some(({ name }) => name === item.dataset.tool)) item.remove();
    for (const tool of tools)
      if (!this.#tools.querySelector(`[data-tool="${CSS.escape(tool.name)}"]`)) this.#tools.append(this.#addTool(tool));
    (this.#tools.parentElement as HTMLElement).hidden = tools.length === 0;
  }

  called(tool: string, text: string, failed: boolean): void {
    const item = this.#tools.querySelector<HTMLElement>(`[data-tool="${CSS.escape(tool)}"]`);
    if (!item) return;
    item.dataset.calls = String(Number(item.dataset.calls) + 1);
    item.toggleAttribute("data-failed", failed);
    item.querySelector("output")!.textContent = text;
  }

  read(uri: string, value: Value): void {
    const row = this.#rows.get(uri);
    if (!row) return; // withdrawn while it was being read
    delete row.item.dataset.stale;
    const text = value.mimeType === "application/json" ? pretty(value.text) : value.text;
    if (row.reads > 0 && text !== row.text) row.change = changed(row.text, text);
    row.text = text;
    row.reads++;
    row.item.dataset.reads = String(row.reads);
    row.preview.textContent = value.text.replace(/\s+/g, " ").trim();
    this.#countRead();
    this.#notifications
      .first((item) => item.dataset.uri === uri)
      ?.querySelector(".then")
      ?.replaceChildren(`read again in ${ms(value.took)}`);
    if (uri === this.#selected) this.#showValue();
  }

  /** One resource could not be read. It may be gone already, or the page's callback failed. */
  unreadable(uri: string, reason: string): void {
    const row = this.#rows.get(uri);
    if (row) row.preview.textContent = reason;
  }

  subscribed(uris: string[]): void {
    this.#step("subscribed", "Subscribed", `to ${uris.length}`);
    this.#root.dataset.agent = "subscribed";
  }

  /** The session has ended, or could not begin. */
  failed(reason: string): void {
    this.#root.dataset.agent = "error";
    this.#trouble.hidden = false;
    this.#trouble.querySelector("span")!.textContent = `The session ended: ${reason}`;
  }

  // The agent's notifications.

  updated(uri: string): void {
    const row = this.#rows.get(uri);
    if (row) {
      row.updates++;
      row.item.dataset.stale = "";
      row.item.dataset.updates = String(row.updates);
      row.count.textContent = `${row.updates}×`;
      row.count.title = count(row.updates, "update");
      flash(row.item);
      if (uri === this.#selected) this.#showValue();
    }
    this.#notify("updated", uri, " changed");
  }

  listChanged(): void {
    this.#notify("list_changed", "", "The list changed");
  }

  message(direction: Direction, message: JSONRPCMessage): void {
    const item = document.createElement("li");
    const { label, method, id } = this.#describe(direction, message);
    item.dataset.direction = direction;
    item.dataset.method = method;
    const text = JSON.stringify(message);
    const summary = element(
      "summary",
      "",
      element("span", "from", direction === "sent" ? "agent" : "page"),
      element("span", "method", label),
      element("span", "id", id),
    );
    item.append(element("details", "", summary, element("pre", "", JSON.stringify(JSON.parse(text), null, 2))));
    this.#messages.add(item);
  }

  /** The label of a message has its method, or the method of its request. */
  #describe(direction: Direction, message: JSONRPCMessage): { label: string; method: string; id: string } {
    const id = "id" in message && message.id !== undefined ? JSON.stringify(message.id) : "";
    if ("method" in message) {
      if (id) this.#asked.set(`${direction} ${id}`, message.method);
      return { label: message.method, method: message.method, id };
    }
    const question = `${direction === "sent" ? "received" : "sent"} ${id}`;
    const method = this.#asked.get(question) ?? "unknown";
    this.#asked.delete(question);
    return { label: `${"error" in message ? "error" : "result"} of ${method}`, method, id };
  }

  #countRead(): void {
    const read = [...this.#rows.values()].filter((row) => row.reads > 0).length;
    if (read > 0) this.#step("read", "Read", String(read));
  }

  /** Writes a step in place of the last one of its kind: each line shows the latest state. */
  #step(kind: string, verb: string, rest: string): HTMLElement {
    const item = element("li", "", element("b", "", verb), ` ${rest}`);
    item.dataset.kind = kind;
    const old = this.#steps.querySelector<HTMLElement>(`[data-kind=${kind}]`);
    if (old?.textContent === item.textContent) return old; // nothing new to show, or to read out
    if (old) old.replaceWith(item);
    else this.#steps.append(item);
    return item;
  }

  #notify(kind: string, uri: string, text: string): void {
    const now = new Date();
    const clock = `${now.toLocaleTimeString("en-GB")}.${String(now.getMilliseconds()).padStart(3, "0")}`;
    const item = document.createElement("li");
    item.dataset.kind = kind;
    item.dataset.uri = uri;
    item.dataset.at = String(performance.now());
    item.append(
      element("time", "", clock),
      uri ? element("span", "what", element("code", "", brief(uri)), text) : element("span", "what", text),
      element("span", "then", ""),
    );
    item.title = uri;
    this.#notifications.add(item);
  }

  #addRow(resource: Resource): Row {
    const item = document.createElement("li");
    item.dataset.uri = resource.uri;
    item.dataset.name = resource.name;
    item.dataset.reads = item.dataset.updates = "0";
    const button = document.createElement("button");
    button.type = "button";
    button.title = `${resource.description ?? ""}\n${resource.uri}`.trim();
    const preview = element("span", "preview", "…");
    const updates = element("span", "count", "");
    button.append(
      // A gateway appends the page and the tab.
      element("span", "name", (resource.title ?? resource.name).split(" - ")[0]!),
      updates,
      element("code", "uri", brief(resource.uri)),
      preview,
    );
    button.addEventListener("click", () => this.#select(resource.uri));
    item.append(button);
    this.#resources.append(item);
    return { item, button, preview, count: updates, text: "", change: { from: 0, to: 0 }, reads: 0, updates: 0 };
  }

  #addTool({ name, description, inputSchema }: Tool): HTMLElement {
    const item = document.createElement("li");
    item.dataset.tool = name;
    item.dataset.calls = "0";
    const form = element("form", "");
    const call = element("button", "", "Call");
    call.title = `Have the agent call ${name}`;
    call.setAttribute("aria-label", call.title);
    const [first] = Object.keys(inputSchema.properties ?? {});
    const input = document.createElement("input");
    input.setAttribute("aria-label", `Input of ${name}, as JSON`);
    input.spellcheck = false;
    input.value = first ? `{"${first}": 1}` : "{}";
    form.append(element("code", "", name), ...(first ? [input] : []), call, element("p", "", description ?? ""));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      try {
        this.onCall(name, JSON.parse(input.value));
      } catch (error) {
        this.called(name, String(error), true);
      }
    });
    item.append(form, element("output", ""));
    return item;
  }

  #select(uri: string): void {
    this.#selected = uri;
    for (const [other, row] of this.#rows) row.button.setAttribute("aria-pressed", String(other === uri));
    const row = this.#rows.get(uri);
    if (row) row.change = { from: 0, to: 0 };
    this.#showValue();
  }

  #showValue(): void {
    const row = this.#rows.get(this.#selected);
    this.#heading.textContent = row ? `Live value of ${row.item.dataset.name}` : "Live value";
    this.#value.dataset.uri = this.#selected;
    // While an agent follows, a resource is stale for only a few milliseconds: the button would flicker.
    this.#again.hidden = !(row && "stale" in row.item.dataset && part("agent").dataset.follow === "no");
    if (!row) return this.#value.replaceChildren();
    const { text, change } = row;
    const { from, to } = change;
    const middle = text.slice(from, to);
    this.#value.replaceChildren(text.slice(0, from), ...(middle ? [element("mark", "", middle)] : []), text.slice(to));
  }
}

/** A list with the newest entry first, and a count of all entries since the last clear. */
class Feed {
  #count = 0;

  constructor(
    private readonly list: HTMLElement,
    private readonly total: HTMLElement,
  ) {}

  add(item: HTMLElement): void {
    this.list.prepend(item);
    while (this.list.children.length > KEPT) this.list.lastElementChild?.remove();
    this.total.textContent = String(++this.#count);
  }

  first(matches: (item: HTMLElement) => boolean): HTMLElement | undefined {
    return ([...this.list.children] as HTMLElement[]).find(matches);
  }

  clear(): void {
    this.list.replaceChildren();
    this.total.textContent = "0";
    this.#count = 0;
  }
}

/** The part of a URI after the page's folder, which differs between its resources. */
function brief(uri: string): string {
  return `…/${uri.slice(new URL(".", location.href).href.length)}`;
}

function count(n: number, noun: string): string {
  return `${n} ${noun}${n === 1 ? "" : "s"}`;
}

function ms(n: number): string {
  return `${n < 10 ? n.toFixed(1) : Math.round(n)} ms`;
}

/** Plays the highlight of `item` from its beginning. */
function flash(item: HTMLElement): void {
  item.classList.remove("fresh");
  void item.offsetWidth; // makes the browser notice that the class was away
  item.classList.add("fresh");
}

function element(tag: string, className: string, ...content: (Node | string)[]): HTMLElement {
  const made = document.createElement(tag);
  if (className) made.className = className;
  made.append(...content);
  return made;
}

function part<T extends HTMLElement = HTMLElement>(id: string): T {
  return document.getElementById(id) as T;
}
