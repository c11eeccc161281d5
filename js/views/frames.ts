/**
 * Notices that a frame is removed, or has loaded a document. A removed frame sends no message, and
 * there is no `pagehide` across origins. So the trees that contain the frame are observed, which
 * costs nothing while nothing is removed. If the element is not known, or is gone already, its
 * window is checked once a second. Only the element's `load` shows that there is a new document,
 * since the window stays the same.
 *
 * It never looks into the document of a frame, which may be of another origin.
 */

/** Events of a frame. */
export interface FrameEvents {
  /** Called once: the frame has left the document, or shows in another window. */
  close(): void;
  /**
   * The frame has loaded a document, also the first one. `perhapsSame`: the page has changed only
   * the fragment of its URL. For a frame of another origin Chromium fires `load` then too, though
   * the document stays.
   */
  loaded(perhapsSame: boolean): void;
}

/**
 * Watches a frame, also one that is not in the document yet. Returns a function that stops
 * watching.
 */
export function watchFrame(frame: HTMLIFrameElement | Window, events: FrameEvents): () => void {
  const element = isElement(frame) ? frame : elementOf(frame, document);
  let window_ = element ? element.contentWindow : (frame as Window);
  let timer: ReturnType<typeof setInterval> | undefined;
  const observer = new MutationObserver((records) => check(records));
  let roots: Node[] = []; // that are observed
  let src = "";
  // A frame that comes into the document later is observed from then on; in a shadow tree, with its
  // first message, or when it has loaded: before its View can have a subscription.
  const onmessage = ({ source }: MessageEvent): void => {
    if (!window_ && source && source === element?.contentWindow) observe(element);
  };
  const onload = (): void => {
    if (!window_) observe(element!);
    const { src: now, srcdoc, contentDocument } = element!;
    const perhapsSame = now !== src && base(now) === base(src) && !contentDocument;
    // A frame without a source has an empty document, which loads as well.
    if (now || src || srcdoc) events.loaded(perhapsSame);
    src = now;
  };
  const stop = (): void => {
    clearInterval(timer);
    element?.removeEventListener("load", onload);
    removeEventListener("message", onmessage, { capture: true });
    observer.disconnect();
  };
  const end = (): void => {
    stop();
    events.close();
  };
  const check = (records: MutationRecord[] = []): void => {
    if (element && !window_) {
      const taken = records.flatMap(({ removedNodes }) => [...removedNodes]).some((node) => node.contains(element));
      if (taken && !element.isConnected) end();
      else observe(element);
    } else if (element ? !element.isConnected || element.contentWindow !== window_ : window_!.closed) end();
    else if (element && rootsOf(element).some((root, i) => root !== roots[i])) observe(element); // by moveBefore
  };
  const observe = (element: HTMLIFrameElement): void => {
    if (!element.isConnected) return; // not yet
    window_ = element.contentWindow;
    clearInterval(timer);
    observer.disconnect();
    roots = rootsOf(element);
    for (const root of roots) observer.observe(root, { childList: true, subtree: true });
  };
  timer = setInterval(check, 1000);
  observer.observe(document, { childList: true, subtree: true });
  element?.addEventListener("load", onload);
  addEventListener("message", onmessage, { capture: true });
  if (element) observe(element);
  return stop;
}

/** The trees around a frame: one in a shadow tree is removed with any of the hosts around it. */
function rootsOf(node: Node): Node[] {
  const root = node.getRootNode();
  return root instanceof ShadowRoot ? [root, ...rootsOf(root.host)] : [root];
}

function base(url: string): string {
  return url.split("#", 1)[0]!;
}

export function isElement(frame: HTMLIFrameElement | Window): frame is HTMLIFrameElement {
  return typeof (frame as Window).postMessage !== "function";
}

/**
 * The element that shows a window, if it is in no closed shadow tree. A window of another origin
 * can only be compared.
 */
function elementOf(window_: Window, root: Document | ShadowRoot): HTMLIFrameElement | undefined {
  for (const element of root.querySelectorAll("iframe")) if (element.contentWindow === window_) return element;
  for (const { shadowRoot } of root.querySelectorAll("*")) {
    const found = shadowRoot && elementOf(window_, shadowRoot);
    if (found) return found;
  }
  return undefined;
}
