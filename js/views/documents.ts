/**
 * Tells whether the document that a frame shows is the App that has subscribed. Of the documents of another origin a
 * page hears two things: that one sends `ui/initialize`, once, before it has loaded or after; and that one has loaded.
 * Where these leave two answers it says "unknown", and the document has to be asked.
 *
 * It never says "app" of a document that may be none, but for one: where the page has attached to an App between its
 * load and its handshake, the next document counts as the App.
 */
export class Documents {
  /** Handshakes since the last load. */
  #handshakes = 0;
  /** Whether the document that has loaded last is an App; undefined before the first load that is seen. */
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
    // One handshake after a load is either that document's, late, or the next one's, early.
    if (handshakes === 1 && before === false) return "unknown";
    this.#app = true;
    return "app";
  }

  /** The document that has loaded last has shown to be an App. */
  isApp(): void {
    this.#app = true;
    this.#handshakes = 0;
  }
}
