/**
 * Decides whether the document in a frame is the App that has subscribed. A page sees only two
 * events of a document of another origin: its `ui/initialize`, once, before or after its load; and
 * its load. If these allow two answers, the result is "unknown", and the document has to be asked.
 *
 * "app" is wrong in one case only: if the page has attached between the load and the handshake of
 * an App, the next document counts as the App.
 */
export class Documents {
  /** Handshakes since the last load. */
  #handshakes = 0;
  /**
   * Whether the document that has loaded last is an App; undefined before the first load that is
   * seen.
   */
  #app: boolean | undefined;

  /** There was a `ui/initialize`. */
  initialized(): void {
    this.#handshakes++;
  }

  /** A document has loaded: is it the one that made the last handshake? */
  loaded(): "app" | "other" | "unknown" {
    const [before, handshakes] = [this.#app, this.#handshakes];
    this.#handshakes = 0;
    this.#app = false;
    if (handshakes === 0) return before === undefined ? "unknown" : "other";
    // One handshake after a load is either a late one of that document, or an early one of the
    // next.
    if (handshakes === 1 && before === false) return "unknown";
    this.#app = true;
    return "app";
  }

  /** The document that has loaded last has proved to be an App. */
  isApp(): void {
    this.#app = true;
    this.#handshakes = 0;
  }
}
