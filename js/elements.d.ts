/// <reference path="./pagewire.d.ts" />

/**
 * Importing this installs the page API, and offers each element that has `data-resource` to agents for as long as it is
 * in the document; and each form with `toolname` as a tool, where the browser does not do that. It exports nothing; on a
 * server that renders it does nothing.
 */
export {};

declare global {
  /** WebMCP's members: respondWith answers the agent, if preventDefault() was called, and throws otherwise. */
  interface SubmitEvent {
    readonly agentInvoked: boolean;
    respondWith(answer: Promise<unknown>): void;
  }
}
