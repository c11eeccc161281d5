/**
 * The intrinsics of the late part: those of intrinsics.ts, taken before the page could patch them, handed over when
 * this part is loaded. The namesakes mean the same.
 */
import type { kit } from "./shared.ts";

type Kit = typeof kit;
export let aborted: Kit["aborted"], apply: Kit["apply"], closePort: Kit["closePort"], defineProperty: Kit["defineProperty"], error: Kit["error"], exec: Kit["exec"], listen: Kit["listen"], messageData: Kit["messageData"];
export let microtask: Kit["microtask"], parse: Kit["parse"], postToPort: Kit["postToPort"], postToWindow: Kit["postToWindow"], SafeAbortController: Kit["SafeAbortController"], SafeMap: Kit["SafeMap"], SafePromise: Kit["SafePromise"];
export let slice: Kit["slice"], startPort: Kit["startPort"], stringify: Kit["stringify"], unlisten: Kit["unlisten"], warn: Kit["warn"];

export function useKit(given: Kit): void {
  ({ aborted, apply, closePort, defineProperty, error, exec, listen, messageData, microtask, parse, postToPort, postToWindow, SafeAbortController, SafeMap, SafePromise, slice, startPort, stringify, unlisten, warn } = given);
}
