/** What the developer points at. */
import { list } from "./share.ts";

/** Offers the developer's picks at `/dev/pointed`. */
export function startPicker(): void {
  list("pointed", "What the developer has pointed at on the page, newest last.");
}
