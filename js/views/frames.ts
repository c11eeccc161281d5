/**
 * Notices that a frame is gone. Nothing tells a page so: a frame that is removed sends no message, and `pagehide` cannot be
 * heard across origins. So the trees that the frame stands in are observed, which costs nothing while nothing is
 * removed; and where the element is not known, or is gone already, its window is asked once a second whether it is
 * closed.
 */

/**
 * Calls `gone` once, when the frame has left the document or shows in another window. A frame that is not in the document yet is
 * waited for. Returns what stops that.
 */
export function watchFrame(frame: HTMLIFrameElement | Window, gone: () => void): () => void {
  const element = isElement(frame) ? frame : elementOf(frame);
  let window_ = element ? element.contentWindow : (frame as Window);
  let timer: ReturnType<typeof setInterval> | undefined;
  let observers: MutationObserver[] = [];
  const stop = (): void => {
    clearInterval(timer);
    for (const observer of observers) observer.disconnect();
    observers = [];
  };
  const check = (): void => {
    if (element && !window_) observe(element);
    else if (element ? !element.isConnected || element.contentWindow !== window_ : window_!.closed) {
      stop();
      gone();
    }
  };
  const observe = (element: HTMLIFrameElement): void => {
    if (!element.isConnected) return; // not yet
    window_ = element.contentWindow;
    stop();
    // A frame in a shadow tree goes with any of the hosts around it.
    for (
      let root: Node | undefined = element.getRootNode();
      root;
      root = root instanceof ShadowRoot ? root.host.getRootNode() : undefined
    ) {
      const observer = new MutationObserver(check);
      observer.observe(root, { childList: true, subtree: true });
      observers.push(observer);
    }
  };
  timer = setInterval(check, 1000);
  if (element) observe(element);
  return stop;
}

export function isElement(frame: HTMLIFrameElement | Window): frame is HTMLIFrameElement {
  return typeof (frame as Window).postMessage !== "function";
}

/** The element that shows a window, if it is not in a shadow tree. Of a window of another origin only identity can be asked. */
function elementOf(window_: Window): HTMLIFrameElement | undefined {
  for (const element of document.querySelectorAll("iframe")) if (element.contentWindow === window_) return element;
  return undefined;
}
