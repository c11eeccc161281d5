/**
 * The parts of a browser that the service worker needs and Node lacks: ports, tabs, and the page at
 * the other end.
 */

export const event = () => {
  const listeners = [];
  return {
    addListener: (listener) => listeners.push(listener),
    removeListener: (listener) => listeners.splice(0, listeners.length, ...listeners.filter((one) => one !== listener)),
    tell: (...args) => listeners.map((l) => l(...args)),
    listeners,
  };
};

export const runtime = {
  id: "ours",
  lastError: undefined,
  onConnect: event(),
  onMessage: event(),
  onConnectExternal: event(),
  onMessageExternal: event(),
  getURL: (path) => `chrome-extension://ours/${path}`,
};

globalThis.navigator ??= { userAgent: "Mozilla/5.0" }; // Node 20 has no navigator
globalThis.chrome = {
  runtime,
  tabs: { query: async () => [], sendMessage: async () => {}, onUpdated: event(), onRemoved: event() },
};

/**
 * A port to the worker. `said` has the worker's messages; `say` sends a message to it; `confirm`
 * confirms its last start.
 */
export function port(name, sender) {
  const p = { said: [], ended: false };
  const onMessage = event();
  const onDisconnect = event();
  p.end = {
    name,
    sender,
    onMessage,
    onDisconnect,
    postMessage: (message) => p.said.push(structuredClone(message)),
    disconnect: () => (p.ended = true),
  };
  p.say = (message) => onMessage.tell(message);
  p.started = () => p.said.findLast((message) => /^start /.test(message));
  p.confirm = () => p.say(p.started());
  p.leave = () => onDisconnect.tell(p.end);
  return p;
}

/** A document of a tab calls the worker, as its relay does. */
export function call(origin, tab = 7, sender = {}) {
  const p = port("pagewire.page", { id: "ours", tab: { id: tab }, frameId: 0, origin, ...sender });
  runtime.onConnect.tell(p.end);
  return p;
}

export const turn = () => new Promise((done) => setImmediate(done));

export async function eventually(what, holds) {
  for (const end = Date.now() + 20_000; !(await holds()); await turn())
    if (Date.now() > end) throw new Error(`in vain: ${what}`);
}
