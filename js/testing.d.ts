/// <reference path="./pagewire.d.ts" />

/** A page of Playwright or Puppeteer. Scripts are evaluated in it; nothing is installed. */
export interface DrivenPage {
  evaluate(script: string): Promise<unknown>;
}

/** A resource, or a template, as agents see it. */
export interface Listed {
  /** Set for a resource. */
  uri?: string;
  /** Set for a template. */
  uriTemplate?: string;
  name: string;
  title?: string;
  description?: string;
  mimeType?: string;
  size?: number;
  annotations?: object;
}

/** A tool of the page, as agents see it. */
export interface ListedTool {
  name: string;
  title?: string;
  description?: string;
  inputSchema: object;
  annotations?: object;
}

/**
 * An agent. URIs may be paths at the page's own origin. If the page refuses a request, its promise rejects with an
 * `Error` that has the message that the agent gets.
 */
export interface Agent {
  /** The resources and the templates of the page. */
  list(): Promise<Listed[]>;
  /** The page's tools, without Pagewire's own. */
  tools(): Promise<ListedTool[]>;
  /**
   * Reads the contents as a model gets them: the text of each piece, or its base64, one per line. Also subscribes: from
   * then on the agent is notified of changes.
   */
  read(uri: string): Promise<string>;
  /**
   * Waits until the agent is notified of a change of `uri` since its last read. Rejects after `timeout` milliseconds
   * (default 1000), and at once if the agent has not read `uri`.
   */
  updated(uri: string, options?: { timeout?: number }): Promise<void>;
  /** Calls a tool. Resolves with the text that a model gets. If the tool fails, that text is the error's message. */
  call(tool: string, args?: object): Promise<string>;
  /** Ends the agent's session. */
  close(): Promise<void>;
}

/**
 * Connects an agent to `page`, or to the page of this process, in a test with jsdom or happy-dom or in a browser.
 * Importing this module installs the page API there, so import it before the page's own modules.
 *
 * Under Node the core is read from the package, and nothing is fetched. Rejects if there is no page, or the page has no
 * Pagewire.
 */
export function watch(page?: DrivenPage): Promise<Agent>;
