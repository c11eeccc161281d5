/**
 * The official TypeScript client, unmodified, which knows only the URL of an MCP server. It is refused, discovers where
 * to log in, registers, sends its user to log in, and then lists, reads and receives updates. Any other end is a
 * failure.
 */
import assert from "node:assert/strict";
import { Client, StreamableHTTPClientTransport, UnauthorizedError } from "@modelcontextprotocol/client";

const [mode, target] = process.argv.slice(2);
const clock = "https://x.test/clock";
const redirect = "http://127.0.0.1:1/callback"; // no server: this script plays the browser

const saved = {};
const authProvider = {
  redirectUrl: redirect,
  clientMetadata: {
    client_name: "test",
    redirect_uris: [redirect],
    grant_types: ["authorization_code"],
    response_types: ["code"],
    token_endpoint_auth_method: "none",
  },
  state: () => "the state",
  clientInformation: () => saved.client,
  saveClientInformation: (client) => void (saved.client = client),
  tokens: () => saved.tokens,
  saveTokens: (tokens) => void (saved.tokens = tokens),
  redirectToAuthorization: (url) => void (saved.login = url),
  saveCodeVerifier: (verifier) => void (saved.verifier = verifier),
  codeVerifier: () => saved.verifier,
  saveDiscoveryState: (state) => void (saved.discovery = state),
  discoveryState: () => saved.discovery,
};

const told = [];
async function connect(transport) {
  const client = new Client(
    { name: "test", version: "1" },
    mode === "modern" ? { versionNegotiation: { mode: { pin: "2026-07-28" } } } : {},
  );
  client.setNotificationHandler("notifications/resources/updated", ({ params }) => void told.push(params.uri));
  await client.connect(transport);
  return client;
}

const first = new StreamableHTTPClientTransport(new URL(target), {
  authProvider,
});
await assert.rejects(
  connect(first),
  (error) => error instanceof UnauthorizedError || error.cause instanceof UnauthorizedError,
);
assert.ok(saved.login, "the client sends its user to log in");
assert.equal(saved.login.searchParams.get("code_challenge_method"), "S256");
assert.match(saved.login.searchParams.get("scope"), /pages:read/);

const login = await fetch(saved.login, { redirect: "manual" });
const back = new URL(login.headers.get("location"));
assert.equal(back.searchParams.get("state"), "the state");
await first.finishAuth(back.searchParams);
assert.ok(saved.tokens.access_token);

const client = await connect(new StreamableHTTPClientTransport(new URL(target), { authProvider }));
assert.ok((await client.listResources()).resources.some(({ uri }) => uri === clock));
if (mode === "modern") await client.listen({ resourceSubscriptions: [clock] });
else await client.subscribeResource({ uri: clock });
for (const end = Date.now() + 80_000; told.length < 2; await new Promise((done) => setTimeout(done, 5)))
  assert.ok(Date.now() < end, "told of the clock");
assert.match((await client.readResource({ uri: clock })).contents[0].text, /^\d+$/);
await client.close();
console.log("done");
