/**
 * The page of a host: stock AppBridges for sandboxed frames, the official client for the server, and our module between
 * them. The tests drive it as the global `host`.
 */
import { AppBridge, PostMessageTransport } from "@modelcontextprotocol/ext-apps/app-bridge";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import type * as types from "../../js/views.d.ts";

export type Era = "legacy" | "modern";

const { attachViews } = (await import("/views.js" as string)) as typeof types;

/** A frame, with the reports and connections of the View in it. */
interface Place {
  frame: HTMLIFrameElement;
  bridge?: AppBridge;
  views?: types.Views;
  reports: Record<string, unknown>[];
}

export const places = new Map<string, Place>();
export let client: Client;
let commands = 0;

export async function connect(url: string, era: Era): Promise<void> {
  client = new Client(
    { name: "host", version: "1" },
    era === "modern" ? { versionNegotiation: { mode: { pin: "2026-07-28" } } } : {},
  );
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
}

/** The same client, on a new connection. */
export async function reconnect(url: string): Promise<void> {
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
}

addEventListener("message", ({ source, data }) => {
  if (!data?.report) return;
  for (const place of places.values()) if (place.frame.contentWindow === source) place.reports.push(data.report);
});

/**
 * Makes a frame, of an opaque origin unless `origin` is "same". `load` loads its View later, so that a bridge can be
 * connected before.
 */
export function frame(name: string, origin: "opaque" | "same" = "opaque"): Place {
  const element = document.createElement("iframe");
  if (origin === "opaque") element.sandbox.add("allow-scripts");
  document.body.append(element);
  const place: Place = { frame: element, reports: [] };
  places.set(name, place);
  return place;
}

/** Connects a stock bridge to a frame, with our module unless `options` is null. */
export async function bridge(name: string, options: types.AttachOptions | null = {}): Promise<AppBridge> {
  const place = places.get(name)!;
  const b = new AppBridge(client, { name: "Host", version: "1" }, { serverResources: { listChanged: true } });
  place.bridge = b;
  if (options) place.views = attachViews(b, client, options);
  const target = place.frame.contentWindow!;
  await b.connect(new PostMessageTransport(target, target));
  return b;
}

/** Loads the View of a frame. */
export const load = (name: string, query = ""): Promise<void> =>
  navigate(name, (frame) => (frame.src = `/view.html?${query}`));

/** Sends a frame to another document with `go`, and waits until that has loaded. */
export async function navigate(name: string, go: (frame: HTMLIFrameElement) => unknown): Promise<void> {
  const place = places.get(name)!;
  const loaded = () => place.reports.filter((r) => r.state === "loaded").length;
  const before = loaded();
  await go(place.frame);
  await until(() => loaded() > before);
}

export async function open(
  name: string,
  query = "",
  options: types.AttachOptions | null = {},
  origin: "opaque" | "same" = "opaque",
): Promise<Place> {
  const place = frame(name, origin);
  await bridge(name, options);
  await load(name, query);
  return place;
}

/** Runs the body of an async function in a View, where `app` is its App, and returns its result. */
export async function inView(name: string, body: string): Promise<unknown> {
  const place = places.get(name)!;
  const command = ++commands;
  place.frame.contentWindow!.postMessage({ command, body }, "*");
  const answer = () => place.reports.find((r) => r.command === command);
  await until(() => !!answer());
  const { error, result } = answer()!;
  if (error) throw new Error(String(error));
  return result;
}

export const stats = (): types.ViewStats => [...places.values()].find((p) => p.views)!.views!.stats();

export const seen = (name: string): unknown[] =>
  places
    .get(name)!
    .reports.filter((r) => "shown" in r)
    .map((r) => r.shown);

export async function until(condition: () => boolean | Promise<boolean>, most = 60_000): Promise<void> {
  for (const end = performance.now() + most; !(await condition()); ) {
    if (performance.now() > end) throw new Error(`waited ${most} ms for ${condition}`);
    await sleep(5);
  }
}

export const sleep = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms));

export { attachViews };
