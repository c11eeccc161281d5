/**
 * The ticket with which a page connects to a gateway of its service, `pagewire node`: a JWT that
 * names the page's user. The service issues it to its user's session. This file fetches it and
 * reads its expiry, and keeps none.
 */
import { exec, parse, SafeAbortController } from "../common/intrinsics.ts";

// The page may patch its own.
const { fetch, atob, Date, String, setTimeout, clearTimeout } = globalThis;
const { max } = Math;

/**
 * The fraction of its life after which a ticket is replaced, and the least time until then, in ms.
 */
const renewAfter = 0.7;
const leastPause = 5_000;
/** The longest wait for the service's answer, in ms. */
const patience = 10_000;

export interface Ticket {
  readonly text: string;
  /** The time until the next ticket must be fetched, in ms from now. */
  readonly renew: number;
}

/**
 * Fetches a ticket. A service answers with the JWT as text, or with {"ticket":"…"}, within 10 s.
 */
export async function fetchTicket(url: string): Promise<Ticket> {
  const abort: AbortController = new SafeAbortController();
  const timer = setTimeout(() => abort.abort(new Error(`it takes longer than ${patience / 1000} s`)), patience);
  try {
    const headers = { accept: "application/json, text/plain" };
    const answer = await fetch(url, { cache: "no-store", headers, signal: abort.signal });
    if (!answer.ok) throw new Error(`it answers ${answer.status}`);
    return ticketOf(await answer.text());
  } finally {
    clearTimeout(timer);
  }
}

function ticketOf(text: string): Ticket {
  if (text[0] === "{") text = String((parse(text) as { ticket?: unknown }).ticket);
  const claims = exec(/^\s*([\w-]+\.([\w-]+)\.[\w-]+)\s*$/, text);
  if (!claims) throw new Error("its answer is not a ticket");
  let end = 0;
  try {
    end = +(parse(atob(claims[2]!.replace(/-/g, "+").replace(/_/g, "/"))) as { exp?: number }).exp! * 1000;
  } catch {}
  return { text: claims[1]!, renew: max(leastPause, (end - Date.now()) * renewAfter || 0) };
}
