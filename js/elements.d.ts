/// <reference path="./pagewire.d.ts" />

/**
 * Import it, and agents get each element with `data-resource` as a resource, and each form with `toolname` as a tool,
 * unless the browser does that. It exports nothing, and does nothing on a server.
 */
export {};

declare global {
  interface SubmitEvent {
    readonly agentInvoked: boolean;
    /** Answers the agent. Throws unless an agent has submitted, and `preventDefault()` was called. */
    respondWith(answer: Promise<unknown>): void;
  }
}
