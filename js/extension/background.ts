/**
 * dist/extension/worker.js: the extension's service worker. It connects the documents, the user's
 * permissions, and the transport to the gateway, which has the core. It shows the state to the
 * extension's own pages (popup, options).
 *
 * Listeners are added before anything is awaited: the browser starts a suspended worker for an
 * event, and drops the event if it finds no listener.
 */
import { paintBadges } from "./badge.ts";
import { documents, Live } from "./documents.ts";
import { fromPanel } from "./messages.ts";
import { nativeMessaging } from "./nativemessaging.ts";
import { type Permissions, permissions } from "./permissions.ts";
import { Picked } from "./picked.ts";
import { Picking } from "./picking.ts";
import { FrontTab, TabCount } from "./reports.ts";
import { registerScripts } from "./scripts.ts";
import type { ShownTab } from "./showntab.ts";
import { Shows } from "./shows.ts";
import { socket } from "./socket.ts";
import type { Request, PanelState } from "./state.ts";
import { tabNames, Targets, webOrigin } from "./tabs.ts";
import type { Transport } from "./transport.ts";

/** Where `pagewire serve` listens, for a browser without a native host. */
const defaultGateway = "ws://127.0.0.1:7433/page";
/**
 * The pause before an unconnected WebSocket is given up for the native host, in ms: it may have
 * been installed.
 */
const lookAgain = 60_000;

const granted = permissions();
/** The same, once they are known. */
let user: Permissions | undefined;
/**
 * The documents must reconnect: the profile has a new name, which only their hello has, or the user
 * tries again.
 */
let anew = false;
void granted.then((p) => {
  user = p;
  void update();
});
/** The extension's own pages that are open. */
const panels = new Set<chrome.runtime.Port>();

/** Registers the content scripts where the user wants them. */
const placed = async () => {
  const p = await granted;
  await registerScripts(p.on.only ? (p.on.stop ? [] : p.offers.list().map(({ origin }) => origin)) : undefined);
};
void placed();
// The listeners make the browser start the worker, which calls `placed`.
chrome.runtime.onInstalled.addListener(() => {});
chrome.runtime.onStartup.addListener(() => {});

const consent = {
  admits: async (origin: string) => {
    const p = await granted;
    return !p.on.stop && p.offers.of(origin) !== undefined;
  },
  profile: () => user?.profile ?? "",
};
const pages = documents({ ...consent, changed: () => void update() }, Live);
const front = new FrontTab(consent);
const targets = new Targets((tab) => shows.known(tab));
const shows = new Shows(
  { ...consent, refuse: (reason, peer) => pages.refuse(reason, peer), target: (tab) => targets.of(tab) },
  () => void update(),
);
/** Whether agents may have something of a tab. */
const offers = (tab: number) => served().some((one) => one.tab === tab);
const tabs = new TabCount({ offers, target: (tab) => targets.of(tab) });
const served = () => [...pages.list().filter((one) => one.admitted && one.offers > 0), ...shows.list()];

const loaded = Picked.load();
const picking = new Picking((pending) => {
  void update();
  // Not all browsers have it, or allow it now. The user can open the popup as well.
  if (pending) void chrome.action.openPopup?.().catch(() => {});
});

/**
 * `local` has the secret and the allowed origins. By default content scripts can read it, and so
 * can a page that has taken over its process. This forbids it; Firefox has no way to do so.
 */
const restricted = chrome.storage.local.setAccessLevel?.({ accessLevel: "TRUSTED_CONTEXTS" });
/** Keeps the native host's secret for the WebSocket, in case the host is removed. */
const keepSecret = async (secret: string) => {
  if (!restricted) return;
  await restricted;
  await chrome.storage.local.set({ secret });
};

const names = tabNames();

/**
 * The one in use, and when it was chosen. Undefined before the first update, and for a moment
 * later.
 */
let transport: Transport | undefined;
let transportSince = 0;

async function chooseTransport(): Promise<void> {
  if (transport) return;
  const name = await names;
  await targets.ready;
  const { gateway, secret } = await chrome.storage.local.get(["gateway", "secret"]);
  if (transport) return;
  let known = typeof secret === "string" ? secret : undefined;
  const bySocket = () => {
    transport?.close();
    transportSince = Date.now();
    transport = socket(typeof gateway === "string" ? gateway : defaultGateway, known, name, () => void update());
    void update();
  };
  transportSince = Date.now();
  const learned = (told: string) => {
    if (told !== known) void keepSecret((known = told));
  };
  transport = nativeMessaging(name, () => void update(), bySocket, learned);
}

/** Whether an update waits for what it needs: it sees all changes until then. */
let updating = false;
async function update(): Promise<void> {
  if (updating) return;
  updating = true;
  const p = await granted;
  await chooseTransport();
  updating = false;
  if (
    anew ||
    (transport!.state.transport === "WebSocket" &&
      !transport!.state.connected &&
      Date.now() - transportSince > lookAgain)
  ) {
    anew = false;
    transport!.close();
    transport = undefined;
    return update();
  }
  const all = pages.list();
  const reports = p.on.front && !p.on.stop;
  front.follow(reports);
  const parts = await loaded;
  if (p.on.stop) shows.allow([]);
  else
    shows.allow(
      p.shows.list().map(({ origin }) => origin),
      parts,
    );
  const others = [...served(), ...(reports ? [front] : [])];
  // Without a native host, a port of this machine would be dialled on and on for the number alone.
  const counts = !p.on.stop && (others.length > 0 || transport!.state.transport === "native messaging");
  tabs.follow(counts);
  transport!.serve([...others, ...(counts ? [tabs] : [])]);
  front.updateSoon(); // a site may be allowed now, or no longer
  // A tab whose page is shown loads documents without a word of theirs.
  const shown = ({ id, loads, tab, origin, admitted }: ShownTab) => ({
    id: id + loads,
    tab,
    origin,
    offers: 1,
    admitted,
  });
  paintBadges([...all, ...shows.list().map(shown)], (origin) => p.offers.of(origin) !== undefined);
  const view = await show(all);
  for (const port of panels) port.postMessage(view);
}

async function show(all: readonly Live[]): Promise<PanelState> {
  const p = await granted;
  return {
    on: p.on,
    profile: p.profile,
    origins: p.offers.list(),
    shows: p.shows.list(),
    parts: (await loaded).list(),
    picked: picking.pending ?? null,
    gateway: transport!.state,
    refused: [...pages.refused],
    pages: all.map(({ tab, frame, origin, title, offers, names, linked }) => ({
      tab,
      frame,
      origin,
      title,
      offers,
      names,
      linked,
      grant: p.offers.of(origin),
    })),
  };
}

chrome.runtime.onConnect.addListener((port) => {
  if (port.name !== fromPanel) return;
  // Only the extension's own pages: a web page that claims to be one has another origin.
  if (port.sender?.id !== chrome.runtime.id || port.sender.origin !== new URL(chrome.runtime.getURL("")).origin) {
    pages.refuse("a page that is not the extension's", port.sender?.origin ?? "somebody");
    port.disconnect();
    return;
  }
  panels.add(port);
  pages.attend(true);
  port.onDisconnect.addListener(() => {
    panels.delete(port);
    if (!panels.size) pages.attend(false);
  });
  port.onMessage.addListener(async (message) => {
    const p = await granted;
    const request = message as Request;
    if (request.do === "preview") {
      const { tab, part: name } = request;
      const part =
        name === picking.pending?.name
          ? picking.pending?.part
          : name && (await loaded).of(webOrigin((await chrome.tabs.get(tab)).url ?? ""), name);
      // The tab has gone, or the part.
      const none = { origin: "" };
      const read =
        name && !part ? none : await shows.preview(tab, name && part ? { name, part } : {}).catch(() => none);
      const preview: Pick<PanelState, "preview"> = { preview: { tab, ...read, ...(name && { part: name }) } };
      if (panels.has(port)) port.postMessage(preview);
      return;
    }
    if (request.do === "profile" || request.do === "retry") anew = true;
    if (request.do === "pick") return picking.begin(request.tab).catch(() => picking.drop()); // no page of a site
    try {
      const parts = await loaded;
      if (request.do === "allow") await p[request.what].allow(request.origin, request.grant);
      else if (request.do === "revoke") await p[request.what].revoke(request.origin);
      else if (request.do === "profile") await p.setProfile(request.name);
      else if (request.do === "share") {
        const { pending } = picking;
        if (pending?.name === request.picked && (await parts.add(pending.origin, request.name, pending.part)))
          picking.drop();
      } else if (request.do === "drop") picking.drop();
      else if (request.do === "rename") await parts.rename(request.origin, request.name, request.to);
      else if (request.do === "forget") await parts.forget(request.origin, request.name);
      else if (request.do !== "retry") await p.turn(request.do, request.on);
    } catch (cause) {
      // The storage has failed, as on a full disk. What the user wants counts all the same, while
      // this worker runs.
      console.error(`pagewire: '${request.do}' is not stored, and is forgotten when the worker ends:`, cause);
    }
    await update(); // at once: pages.look waits for every tab, and one may hang
    await placed();
    if (request.do === "allow" && request.tab !== undefined) await chrome.tabs.reload(request.tab);
    await pages.look();
    await update();
  });
  void pages.look();
  void update();
});
