/// <reference path="./pagewire.d.ts" />

/** A page of Playwright or Puppeteer. Scripts are evaluated in it; nothing is installed. */
export interface DrivenPage {
  evaluate(script: string): Promise<unknown>;
}

/** A resource, or a template, as agents see it. */
export interface Listed {
  /** Of a resource. */
  uri?: string;
  /** Of a template. */
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
 * An agent. URIs may be paths at the page's own origin. What the page refuses is an `Error` with the message that the
 * agent gets.
 */
export interface Agent {
  /** The resources and the templates of the page. */
  list(): Promise<Listed[]>;
  /** The page's tools, without Pagewire's own. */
  tools(): Promise<ListedTool[]>;
  /**
   * The contents as a model is told them: the text of each piece, or its base64, in lines. From then on the agent is
   * told when they change.
   */
  read(uri: string): Promise<string>;
  /**
   * Waits until the agent has been told that `uri` has changed since it read it. Rejects after `timeout` milliseconds
   * (default 1000), and if it has not read it.
   */
  updated(uri: string, options?: { timeout?: number }): Promise<void>;
  /** Calls a tool. Gives the text that a model is told; if the tool failed, that is the error's message. */
  call(tool: string, args?: object): Promise<string>;
  /** Ends the agent's session. */
  close(): Promise<void>;
}

/**
 * Connects an agent to `page`, or to the page of this process: a test with jsdom or happy-dom, or in a browser. Importing
 * this installs the page API there, so it is imported before the page's own modules.
 *
 * Under Node the core is read from the package, and nothing is fetched. Rejects if there is no page, or the page has no
 * Pagewire.
 */
export function watch(page?: DrivenPage): Promise<Agent>;
