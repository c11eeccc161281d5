// Run in each document by the gateway, over CDP: `name` is the binding that is this document's alone, `gateway` where
// pages connect to it by themselves, or "". It finds Pagewire, at once or when it comes, and carries texts between it
// and the gateway: what is posted begins with a letter, for document.go. The result takes texts of the gateway.
//
// It changes nothing that the page could see but one symbol, by which a later gateway, or the same after the page was
// frozen, ends what this one has begun.
((name, gateway) => {
  const mark = Symbol.for("pagewire.gateway");
  const binding = globalThis[name];
  delete globalThis[name];
  globalThis[mark]?.();
  let over = false;
  let linked = false;
  let receive = () => {};
  const post = (text) => over || binding(text);
  const about = () => `${document.title ?? ""}`.slice(0, 1000);
  let leaves = false;
  const seen = ({ isTrusted, type }) => {
    if (type === "pagehide") leaves = true; // it is hidden next, and its tab stays in front
    else if (!isTrusted || leaves || comes()) return;
    else if (type === "focus" || document.visibilityState === "visible") post(linked ? "f" : "v");
    else post("h");
  };

  const stop = () => {
    over = true;
    watch.disconnect();
    for (let i = 0; i < listeners.length; i++)
      listeners[i].target.removeEventListener(listeners[i].type, listeners[i].listener, true);
    receive(null);
  };

  const up = () => {
    linked = true;
    post("p" + (told = about()));
    if (document.hasFocus()) post("f");
    if (document.head) watch.observe(document.head, { subtree: true, childList: true, characterData: true });
  };

  // The browser does not tell of titles that scripts change. Some count in theirs: once a second is often enough.
  let told;
  let retitling = false;
  const watch = new MutationObserver(() => {
    if (retitling || about() === told) return;
    retitling = true;
    setTimeout(() => {
      retitling = false;
      post("t" + (told = about()));
    }, 1000);
  });

  /** A page of this machine that looks for this very gateway comes by itself: it is not taken twice. */
  const comes = () => {
    const asked = document.querySelector("script[data-gateway]")?.dataset.gateway;
    try {
      return (
        gateway !== "" &&
        new URL(asked).host === gateway &&
        /^(localhost|.*\.localhost|127(\.\d+){3}|\[::1\])$/.test(location.hostname)
      );
    } catch {
      return false;
    }
  };

  /** Begins a link with Pagewire, if it is there. */
  const look = () => {
    if (linked || comes() || over || typeof globalThis.pagewire?.configure !== "function") return;
    const link = (frame) => post("l" + frame);
    try {
      globalThis.pagewire.configure({ gateway: link });
    } catch {
      return; // another library's
    }
    receive = (calls) => link.receive?.(calls);
    up();
  };

  const onmessage = ({ data, source }) =>
    source === window && data?.channel === "mcp-default" && data.payload === "mcp-server-ready" && look();
  const onload = () => {
    look();
    if (linked || comes()) return;
    post("n" + about());
    if (document.hasFocus()) post("v");
  };
  // By index, below as above: the iterator of arrays is the page's.
  const listeners = [
    { target: window, type: "message", listener: onmessage },
    { target: document, type: "DOMContentLoaded", listener: look },
    { target: window, type: "load", listener: onload },
    { target: window, type: "focus", listener: seen },
    { target: window, type: "pagehide", listener: seen },
    { target: document, type: "visibilitychange", listener: seen },
  ];
  for (let i = 0; i < listeners.length; i++)
    listeners[i].target.addEventListener(listeners[i].type, listeners[i].listener, true);
  Object.defineProperty(globalThis, mark, { configurable: true, value: stop });

  if (document.readyState === "complete") onload();
  else look();
  return (calls) => receive(calls);
})
