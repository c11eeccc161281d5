// `pagewire inspect` opens this page with a ticket, which the page exchanges, once, for a session.
// The session belongs to this tab, and survives a reload. The feed's first message has it: a cookie
// would go to every port of this machine, and an address would end up in a history or a log.

const key = "pagewire:session";

/** The session, or "" without one: then the gateway says what to do. */
export async function takeTicket(): Promise<string> {
  const ticket = new URLSearchParams(location.hash.slice(1)).get("ticket");
  if (ticket) {
    history.replaceState(null, "", location.pathname);
    const answer = await fetch("/session", { method: "POST", body: JSON.stringify({ ticket }) });
    if (answer.ok) sessionStorage.setItem(key, (await answer.json()).session);
  }
  return sessionStorage.getItem(key) ?? "";
}
