/// <reference path="./pagewire.d.ts" />

/**
 * Import it, and agents get elements with `data-resource` as resources, and forms with `toolname` as tools, unless the
 * browser does that. It exports nothing, and does nothing on a server.
 */
export {};

declare global {
  interface SubmitEvent {
    readonly agentInvoked: boolean;
    /** Answers the agent. Throws unless an agent has submitted, and `preventDefault()` was called. */
    respondWith(answer: Promise<unknown>): void;
  }
}
