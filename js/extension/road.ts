/**
 * What a road to the gateway does: it opens one MCP session with each document that it is given, for as long as there are
 * both the document and a gateway. native.ts and socket.ts are the two roads.
 */
import type { Document } from "../extension.d.ts";

/** What a road is at: agents can come; it looks for a gateway; there is none that it could find, which says why. */
export interface State {
  readonly road: "native messaging" | "WebSocket";
  readonly connected: boolean;
  readonly why: string;
}

export interface Road {
  readonly state: State;
  /** Takes the documents that there are now, and lets go of those that are not among them. */
  serve(documents: readonly Document[]): void;
  close(): void;
}

/** How the gateway knows a tab, also after a reload, and after the worker was suspended: but not after the browser ended. */
export type TabName = (tab: number) => string;

/** What a document says when it introduces itself: the note of bridge/gateway/socket. */
export const introduction = (document: Document, name: TabName) => ({
  tab: name(document.tab),
  frame: document.frame,
  title: document.title,
  url: document.url,
  origin: document.origin,
  focused: document.focused,
});
