/// <reference path="./pagewire.d.ts" />

/**
 * Importing it offers elements with `data-resource` as resources and, where the browser does not, forms with `toolname`
 * as tools. It exports nothing, and does nothing on a server.
 */
export {};

declare global {
  interface SubmitEvent {
    readonly agentInvoked: boolean;
    /** Answers the agent. Throws unless an agent submitted and you called `preventDefault()`. */
    respondWith(answer: Promise<unknown>): void;
  }
}
