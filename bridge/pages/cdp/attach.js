// The gateway runs this in each document, over CDP. `name` is this document's own binding;
// `gateway` is the gateway's address, or "". It finds Pagewire, at once or later, and carries texts
// between it and the gateway. A posted text begins with a letter for document.go. The result takes
// texts of the gateway.
//
// A page without Pagewire finds no change. By an event with its address, a later gateway, or the
// same one after the page was frozen, ends this script, as a gateway that was killed could not do.
// Gateways of other addresses go on.
((name, gateway) => {
  const mark = "pagewire.gateway " + gateway;
  const binding = globalThis[name];
  delete globalThis[name];
  // By the prototypes: an element named "title" hides the document's own member.
  const { addEventListener, removeEventListener, dispatchEvent } = EventTarget.prototype;
  const its = (member) => Reflect.get(Document.prototype, member, document);
  const hasFocus = () => Reflect.apply(its("hasFocus"), document, []);
  Reflect.apply(dispatchEvent, document, [new Event(mark)]);
  let over = false;
  let linked = false;
  let receive = (calls) => calls && look(); // the gateway asks for that
  const post = (text) => over || binding(text);
  const about = () => `${its("title") ?? ""}`.slice(0, 1000);
  let leaves = false;
  const seen = ({ isTrusted, type }) => {
    if (type === "pagehide") leaves = true; // it is hidden next, but its tab stays in front
    else if (!isTrusted || leaves) return;
    else if (type === "focus" || its("visibilityState") === "visible") post(linked ? "f" : "v");
    else post("h");
  };

  const stop = () => {
    post("x");
    over = true;
    watch.disconnect();
    rewritten.disconnect();
    each(removeEventListener);
    receive(null);
  };

  const up = () => {
    linked = true;
    post("p" + (told = about()));
    if (hasFocus()) post("f");
    follow();
  };

  // The browser does not report titles that scripts change. Some pages count in theirs: once a
  // second is often enough.
  let told;
  let retitling = false;
  const retitle = () => {
    if (retitling || about() === told) return;
    retitling = true;
    setTimeout(() => {
      retitling = false;
      post("t" + (told = about()));
    }, 1000);
  };
  const watch = new MutationObserver(retitle);
  const follow = () => {
    if (its("head")) watch.observe(its("head"), { subtree: true, childList: true, characterData: true });
  };

  /** Begins a link with Pagewire, if it is there. */
  const look = () => {
    if (linked || over || typeof globalThis.pagewire?.configure !== "function") return;
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
  const onparsed = () => {
    look();
    if (!linked) return;
    follow(); // an injected page layer is there before the head of a slow page
    retitle();
  };
  const onload = () => {
    look();
    if (linked) return;
    post("n" + about());
    if (hasFocus()) post("v");
  };
  // The loop goes by index: the page may have replaced the iterator of arrays.
  const listeners = [
    { target: window, type: "message", listener: onmessage },
    { target: document, type: "load", listener: look }, // of a script, as soon as it has run
    { target: document, type: "DOMContentLoaded", listener: onparsed },
    { target: window, type: "load", listener: onload },
    { target: window, type: "focus", listener: seen },
    { target: window, type: "pagehide", listener: seen },
    { target: document, type: "visibilitychange", listener: seen },
    { target: document, type: mark, listener: (event) => event instanceof Event && stop() },
  ];
  const each = (method) => {
    for (let i = 0; i < listeners.length; i++)
      Reflect.apply(method, listeners[i].target, [listeners[i].type, listeners[i].listener, true]);
  };
  const listen = () => each(addEventListener);
  listen();
  // document.open() keeps this context, and removes all listeners of the document and its window.
  const rewritten = new MutationObserver(listen);
  rewritten.observe(document, { childList: true });

  if (its("readyState") === "complete") onload();
  else look();
  return (calls) => receive(calls);
})
