// Failed requests, of XMLHttpRequest and of fetch.
import assert from "node:assert/strict";
import { before, test } from "node:test";

/** A request whose end the test decides. */
class Request extends EventTarget {
  status = 0;
  open() {}
  ends(type, status = 0) {
    this.status = status;
    this.dispatchEvent(new Event(type));
  }
}

let requests;
const noted = () => JSON.parse(requests.read().text);

before(async () => {
  globalThis.navigator ??= {}; // Node 20 has none
  globalThis.Node ??= class {};
  globalThis.Window ??= class {};
  globalThis.XMLHttpRequest = Request;
  globalThis.fetch = (_, { signal }) => Promise.reject(signal.reason);
  globalThis.location = new URL("https://x.test/app");
  globalThis.document = { baseURI: location.href, modelContext: { registerResource: (it) => (requests = it) } };
  const { shareRequests } = await import("../../../dist/test/page.mjs");
  shareRequests();
});

test("a request that is opened anew is noted as what it was opened for last", () => {
  const request = new XMLHttpRequest();
  request.open("get", "/first");
  request.open("POST", "second");
  request.ends("load", 500);
  assert.deepEqual(noted(), [{ method: "POST", url: "/second", status: 500 }]);
  request.open("GET", "/third");
  request.ends("load", 200);
  request.open("GET", "/fourth");
  request.ends("error");
  assert.deepEqual(noted().slice(1), [{ method: "GET", url: "/fourth", error: "error" }]);
});

test("fetch rejects with the app's own reason, whatever that is", async () => {
  for (const [reason, error] of [
    [Symbol("left"), "Symbol(left)"],
    [Object.create(null), "[Object]"],
    [5, "5"],
  ]) {
    const mine = await fetch("/a", { signal: AbortSignal.abort(reason) }).catch((error) => error);
    assert.equal(mine, reason);
    assert.deepEqual(noted().at(-1), { method: "GET", url: "/a", error });
  }
});
