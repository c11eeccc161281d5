/// <reference path="./pagewire.d.ts" />

/**
 * Importing this installs the page API. Agents then get each element with `data-resource` as a resource while it is in
 * the document, and each form with `toolname` as a tool, unless the browser itself offers forms as tools. The module
 * exports nothing. On a server that renders it does nothing.
 */
export {};

declare global {
  /** WebMCP's. respondWith answers the agent. It throws without an agent's submission, or without preventDefault(). */
  interface SubmitEvent {
    readonly agentInvoked: boolean;
    respondWith(answer: Promise<unknown>): void;
  }
}
