/// <reference path="./pagewire.d.ts" />

/** A page of Playwright or Puppeteer. */
export interface DrivenPage {
  evaluate(script: string): Promise<unknown>;
}

/** A resource has `uri`, a template `uriTemplate`. */
export interface Listed {
  uri?: string;
  uriTemplate?: string;
  name: string;
  title?: string;
  description?: string;
  mimeType?: string;
  size?: number;
  annotations?: object;
}

export interface ListedTool {
  name: string;
  title?: string;
  description?: string;
  inputSchema: object;
  annotations?: object;
}

/** URIs may be paths at the page's origin. A refused call rejects with the message that an agent gets. */
export interface Agent {
  list(): Promise<Listed[]>;
  /** The page's, without Pagewire's own. */
  tools(): Promise<ListedTool[]>;
  /** What a model gets: the text of each piece, or its base64, on lines. Also subscribes. */
  read(uri: string): Promise<string>;
  /** Waits `timeout` ms (default 1000) for a change since the last `read`. Without a `read`, it rejects at once. */
  updated(uri: string, options?: { timeout?: number }): Promise<void>;
  /** The text that a model gets; if the tool fails, the error's message. */
  call(tool: string, args?: object): Promise<string>;
  close(): Promise<void>;
}

/**
 * Connects an agent to `page`, or to this process's page (jsdom, happy-dom or a browser). Import it before the page's
 * modules. Rejects if the page has no Pagewire.
 */
export function watch(page?: DrivenPage): Promise<Agent>;
