// Failed requests of XMLHttpRequest.
import assert from "node:assert/strict";
import { test } from "node:test";

/** A request whose end the test decides. */
class Request extends EventTarget {
  status = 0;
  open() {}
  ends(type, status = 0) {
    this.status = status;
    this.dispatchEvent(new Event(type));
  }
}

test("a request that is opened anew is noted as what it was opened for last", async () => {
  globalThis.navigator ??= {}; // Node 20 has none
  globalThis.Node ??= class {};
  globalThis.Window ??= class {};
  globalThis.XMLHttpRequest = Request;
  globalThis.location = new URL("https://x.test/app");
  let read;
  const registerResource = (resource) => ({ read } = resource);
  globalThis.document = { baseURI: location.href, modelContext: { registerResource } };
  const { shareRequests } = await import("../../../dist/test/page.mjs");
  shareRequests();
  const noted = () => JSON.parse(read().text);

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
