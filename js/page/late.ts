/**
 * The intrinsics of the late part: those of intrinsics.ts, taken before the page could patch them, handed over when
 * this part is loaded. The namesakes mean the same.
 */
import type { kit } from "./shared.ts";

type Kit = typeof kit;
export let apply: Kit["apply"], closePort: Kit["closePort"], error: Kit["error"], exec: Kit["exec"], listen: Kit["listen"], messageData: Kit["messageData"];
export let microtask: Kit["microtask"], parse: Kit["parse"], postToPort: Kit["postToPort"], SafeAbortController: Kit["SafeAbortController"], SafeMap: Kit["SafeMap"];
export let slice: Kit["slice"], startPort: Kit["startPort"], stringify: Kit["stringify"], unlisten: Kit["unlisten"];

export function useKit(given: Kit): void {
  ({ apply, closePort, error, exec, listen, messageData, microtask, parse, postToPort, SafeAbortController, SafeMap, slice, startPort, stringify, unlisten } = given);
}
