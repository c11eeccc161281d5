/** Reports an error to the page's developer, on the console and by an `error` event. */
import { error } from "./intrinsics.ts";
import type { Early } from "../early/shared.ts";

export function report({ emit }: Pick<Early, "emit">, message: string): void {
  message = `pagewire: ${message}`;
  error(message);
  emit("error", { message });
}
