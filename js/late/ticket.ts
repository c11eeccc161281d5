/**
 * The ticket with which a page connects to a gateway of its service, `pagewire node`: a JWT that says whose page this is.
 * The page has it from its own service, by its user's session there; here it is only carried, and its end looked at.
 *
 * It never keeps a ticket, and never says one to anybody but the gateway.
 */
import { exec, parse } from "./intrinsics.ts";

// The page may patch its own.
const { fetch, atob, Date, String } = globalThis;
const { max } = Math;

/** The part of its life after which a ticket is replaced, and the least time between two, in ms. */
const renewAfter = 0.7;
const leastPause = 5_000;

export interface Ticket {
  readonly text: string;
  /** When another one is to be fetched, in ms from now. */
  readonly renew: number;
}

/** Fetches a ticket. A service answers with the JWT as text, or with {"ticket":"…"}. */
export async function fetchTicket(url: string): Promise<Ticket> {
  const answer = await fetch(url, { cache: "no-store", headers: { accept: "application/json, text/plain" } });
  if (!answer.ok) throw new Error(`it answers ${answer.status}`);
  let text = await answer.text();
  if (text[0] === "{") text = String((parse(text) as { ticket?: unknown }).ticket);
  const claims = exec(/^\s*([\w-]+\.([\w-]+)\.[\w-]+)\s*$/, text);
  if (!claims) throw new Error("what it gives is no ticket");
  let end = 0;
  try {
    end = +(parse(atob(claims[2]!.replace(/-/g, "+").replace(/_/g, "/"))) as { exp?: number }).exp! * 1000;
  } catch {}
  return { text: claims[1]!, renew: max(leastPause, (end - Date.now()) * renewAfter || 0) };
}
