// How the page comes to see anything: `pagewire inspect` has led it here with a ticket, which it exchanges, once, for a
// session. The session is this tab's, survives a reload, and is said in the feed's first message: no cookie, which
// every port of this machine would get, and no address that ends up in a history or a log.

const key = "pagewire:session";

/** The session, or "" if there is none: the gateway then says what to do. */
export async function takeTicket(): Promise<string> {
  const ticket = new URLSearchParams(location.hash.slice(1)).get("ticket");
  if (ticket) {
    history.replaceState(null, "", location.pathname);
    const answer = await fetch("/session", { method: "POST", body: JSON.stringify({ ticket }) });
    if (answer.ok) sessionStorage.setItem(key, (await answer.json()).session);
  }
  return sessionStorage.getItem(key) ?? "";
}
