/**
 * The intrinsics of the late part: those of page/intrinsics.ts, taken before the page could patch them, handed over when
 * this part is loaded, by position. The namesakes mean the same.
 */
import type { kit } from "../page/shared.ts";

type Kit = typeof kit;
export let aborted: Kit[0];
export let apply: Kit[1];
export let closePort: Kit[2];
export let defineProperty: Kit[3];
export let error: Kit[4];
export let exec: Kit[5];
export let listen: Kit[6];
export let messageData: Kit[7];
export let microtask: Kit[8];
export let parse: Kit[9];
export let postToPort: Kit[10];
export let postToWindow: Kit[11];
export let SafeAbortController: Kit[12];
export let SafeMap: Kit[13];
export let SafePromise: Kit[14];
export let slice: Kit[15];
export let startPort: Kit[16];
export let stringify: Kit[17];
export let unlisten: Kit[18];
export let warn: Kit[19];

export function setKit(given: Kit): void {
  // Not by destructuring: an array is destructured by its iterator, which a page can have patched.
  aborted = given[0];
  apply = given[1];
  closePort = given[2];
  defineProperty = given[3];
  error = given[4];
  exec = given[5];
  listen = given[6];
  messageData = given[7];
  microtask = given[8];
  parse = given[9];
  postToPort = given[10];
  postToWindow = given[11];
  SafeAbortController = given[12];
  SafeMap = given[13];
  SafePromise = given[14];
  slice = given[15];
  startPort = given[16];
  stringify = given[17];
  unlisten = given[18];
  warn = given[19];
}
