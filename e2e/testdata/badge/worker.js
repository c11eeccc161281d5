// Another party's extension, with Pagewire in it: the badge shows the text of a page's first resource, live. A click on
// the button allows the site. The folder pagewire/ holds four files of the npm package: extension.page.js,
// extension.relay.js, extension.worker.js and pagewire.wasm.
import { documents } from "./pagewire/extension.worker.js";

const sessions = new Map(); // by id of the documents shown

const pages = documents({
  wasm: chrome.runtime.getURL("pagewire/pagewire.wasm"),
  admits: async (origin) => (await chrome.storage.local.get(origin))[origin] === true,
  changed: () => {
    for (const page of pages.list()) if (page.admitted && !sessions.has(page.id)) show(page);
  },
});

async function show(page) {
  const waiting = new Map();
  let last = 0;
  const take = async ({ id, method, result }) => {
    waiting.get(id)?.(result);
    waiting.delete(id);
    if (method === "notifications/resources/list_changed") await first();
    if (method === "notifications/resources/updated") await read();
  };
  const closed = () => sessions.delete(page.id);
  sessions.set(page.id, page.open({ deliver: (text) => take(JSON.parse(text)), closed }).catch(closed));
  const session = await sessions.get(page.id);
  const say = (message) => session.receive(JSON.stringify({ jsonrpc: "2.0", ...message }));
  const ask = (method, params) =>
    new Promise((done) => {
      waiting.set(++last, done);
      say({ id: last, method, params });
    });

  let uri;
  const read = async () => {
    const { contents } = await ask("resources/read", { uri });
    await chrome.action.setBadgeText({ tabId: page.tab, text: contents[0].text.slice(0, 4) });
  };
  const first = async () => {
    const { resources } = await ask("resources/list", {});
    if (!resources.length || resources[0].uri === uri) return;
    uri = resources[0].uri;
    await ask("resources/subscribe", { uri });
    await read();
  };
  await ask("initialize", {
    protocolVersion: "2025-11-25",
    capabilities: {},
    clientInfo: { name: "badge", version: "1" },
  });
  say({ method: "notifications/initialized" });
  await first();
}

chrome.action.onClicked.addListener(async ({ url }) => {
  await chrome.storage.local.set({ [new URL(url).origin]: true });
  await pages.look();
});
