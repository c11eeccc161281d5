/**
 * The two ends of a WebSocket prove to each other that they know a secret, without sending it: the
 * gateway first, so that a program that has taken its port learns nothing. bridge/internal/proof
 * describes it and is the other side; the vectors in its folder test both.
 */

/** An open WebSocket: `next` resolves with the next text that comes. */
export interface Talk {
  send(text: string): void;
  next(): Promise<string>;
}

const nonceShape = /^[\w-]{43}$/;
const encoder = new TextEncoder();

const base64url = (bytes: ArrayBuffer | Uint8Array) =>
  btoa(String.fromCharCode(...new Uint8Array(bytes)))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replaceAll("=", "");

function bytesOf(text: string): Uint8Array<ArrayBuffer> {
  const binary = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  return Uint8Array.from(binary, (c) => c.charCodeAt(0));
}

const words = (...all: string[]) => encoder.encode("pagewire proof 1\n" + all.join("\n"));

/** The host and port of a WebSocket's URL, as the gateway sees them. */
export function whereOf(url: string): string {
  const { protocol, hostname, port } = new URL(url);
  return `${hostname}:${port || (protocol === "wss:" ? 443 : 80)}`;
}

/** The client's proof that it knows the secret. Throws unless `proof` is the gateway's. */
export async function answer(secret: string, where: string, client: string, server: string, proof: string) {
  const hmac = { name: "HMAC", hash: "SHA-256" };
  const key = await crypto.subtle.importKey("raw", encoder.encode(secret), hmac, false, ["sign", "verify"]);
  if (!nonceShape.test(server) || !nonceShape.test(proof)) throw new Error("no proof");
  const good = await crypto.subtle.verify("HMAC", key, bytesOf(proof), words("gateway", where, client, server));
  if (!good) throw new Error("a wrong proof");
  return base64url(await crypto.subtle.sign("HMAC", key, words("client", where, client, server)));
}

/**
 * Resolves when the gateway at `url` has proved that it knows the secret, and our proof has been
 * sent.
 */
export async function prove(secret: string, url: string, { send, next }: Talk): Promise<void> {
  const ours = base64url(crypto.getRandomValues(new Uint8Array(32)));
  send(JSON.stringify({ type: "pagewire:hello", nonce: ours }));
  let theirs: { type?: unknown; nonce?: unknown; proof?: unknown };
  let proof: string;
  try {
    theirs = JSON.parse(await next());
    if (theirs.type !== "pagewire:proof") throw new Error("no proof");
    proof = await answer(secret, whereOf(url), ours, String(theirs.nonce), String(theirs.proof));
  } catch {
    throw new Error(`what listens at ${whereOf(url)} does not prove that it is your pagewire serve`);
  }
  send(JSON.stringify({ type: "pagewire:proof", proof }));
}
