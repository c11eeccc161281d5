/**
 * The intrinsics of the late part. page/intrinsics.ts took them before the page could patch them,
 * and passes them on by position when this part is loaded. Equal names mean the same.
 */
import type { kept } from "../early/intrinsics.ts";

type Kept = typeof kept;
export let aborted: Kept[0];
export let apply: Kept[1];
export let closePort: Kept[2];
export let defineProperty: Kept[3];
export let error: Kept[4];
export let exec: Kept[5];
export let listen: Kept[6];
export let messageData: Kept[7];
export let microtask: Kept[8];
export let parse: Kept[9];
export let postToPort: Kept[10];
export let postToWindow: Kept[11];
export let SafeAbortController: Kept[12];
export let SafeMap: Kept[13];
export let SafePromise: Kept[14];
export let slice: Kept[15];
export let startPort: Kept[16];
export let stringify: Kept[17];
export let unlisten: Kept[18];
export let warn: Kept[19];

export function keep(kept: Kept): void {
  // Not by destructuring: an array is destructured by its iterator, which a page can have patched.
  aborted = kept[0];
  apply = kept[1];
  closePort = kept[2];
  defineProperty = kept[3];
  error = kept[4];
  exec = kept[5];
  listen = kept[6];
  messageData = kept[7];
  microtask = kept[8];
  parse = kept[9];
  postToPort = kept[10];
  postToWindow = kept[11];
  SafeAbortController = kept[12];
  SafeMap = kept[13];
  SafePromise = kept[14];
  slice = kept[15];
  startPort = kept[16];
  stringify = kept[17];
  unlisten = kept[18];
  warn = kept[19];
}
