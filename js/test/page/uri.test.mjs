// The canonical form of a resource's URI, and its origin.
import assert from "node:assert/strict";
import { test } from "node:test";
import { canonical, maxURI, requireOrigin } from "../../../dist/test/page.mjs";

const at = (origin) => (uri) => requireOrigin(canonical(uri, ""), origin, "");
const own = at("https://x.test");

const same = {
  "https://x.test": "https://x.test/",
  "HTTPS://X.TEST:443/a/./b/../c": "https://x.test/a/c",
  "https://x.test/é?ö": "https://x.test/%C3%A9?%C3%B6",
  " https://x.test/a ": "https://x.test/a",
  "https://x.test/a?b=1&c=": "https://x.test/a?b=1&c=",
  "https://x.test/}": "https://x.test/%7D",
  "https://x.test/{id}": "https://x.test/{id}",
  "HTTPS://X.test:443/a/{id}/B{?c,d}": "https://x.test/a/{id}/B{?c,d}",
  "https://x.test/é/{id}": "https://x.test/%C3%A9/{id}",
  "https://x.test/a {id}": "https://x.test/a%20{id}",
  "https://x.test/s?q={q}&r={r}": "https://x.test/s?q={q}&r={r}",
  "https://x.test/s{?q}": "https://x.test/s{?q}",
};
for (const [uri, key] of Object.entries(same)) test(`'${uri}' is '${key}'`, () => assert.equal(own(uri), key));

/**
 * The parts after the origin: templates of other forms than the two permitted ones, and URIs with
 * forbidden parts.
 */
const bad =
  "# a#b #{a} {a}#b {a}/é { {} {a {a}} {a}{b} {a}/{a} {a}{?a} {?a,a} {+a} {#a} {/a} {&a} {a*} {a:3} {a,b} {a-b} {{a}} {?a}x {?a}{?b}";
const refused = {
  TypeError: [
    ...["", "a", "/a", "//x.test/a", "https://", "https://x.test:99999/"],
    ...["https://u@x.test/", "https://u:p@x.test/a", "https://u@x.test/{a}"],
    ...bad.split(" ").map((path) => `https://x.test/${path}`),
    "https://x.test/{a} b",
  ],
  SecurityError: [
    ...[
      "http://x.test/",
      "https://x.test.evil/",
      "https://x.testevil/",
      "https://x.test:8443/",
      "https://evil/x.test/",
    ],
    ...["app://x.test/", "data:,x", "blob:https://x.test/1", "file:///etc", "javascript:0", "x.test:a"],
    ...["https://x.test/.pagewire/", "https://x.test/a/../.pagewire/tab/2/a", "https://x.test/.pagewire/{a}"],
    ...["https://{host}/", "https://x.test{a}", "https://x.test{a}/", "https://x.{tld}/", "{scheme}://x.test/", "{a}"],
    ...["https://evil/{a}", "https:x.test/{a}", "https:\\\\x.test\\{a}"],
  ],
  QuotaExceededError: ["https://x.test/" + "a".repeat(maxURI)],
};
for (const [name, uris] of Object.entries(refused))
  for (const uri of uris) test(`'${uri.slice(0, 40)}' is a ${name}`, () => assert.throws(() => own(uri), { name }));

test("an opaque origin has no URI", () => {
  for (const uri of ["data:,x", "https://null/", "x:null/"])
    assert.throws(() => at("null")(uri), { name: "SecurityError" });
});

test("only http and https origins have URIs", () => {
  assert.throws(() => at("chrome-extension://abc")("chrome-extension://abc/a"), { name: "SecurityError" });
});

test("a message says where, which URI, and what to write instead", (t) => {
  globalThis.Document = class {
    get baseURI() {
      return this.base;
    }
  };
  globalThis.document = Object.assign(new Document(), { base: "https://x.test/app/page?tab=1" });
  t.after(() => {
    delete globalThis.document;
    delete globalThis.Document;
  });
  const refusal = (uri) => {
    try {
      own(uri);
    } catch ({ message }) {
      return message;
    }
  };
  assert.throws(() => canonical("nope", "Failed to execute 'x': "), {
    message:
      "Failed to execute 'x': 'nope' is not a valid absolute URI. " +
      "Write 'https://x.test/app/nope', which is location.origin + '/app/nope'.",
  });
  const paths = {
    "/state/cart": "/state/cart",
    "state/cart": "/app/state/cart",
    "./x": "/app/x",
    "../x y/é": "/x%20y/%C3%A9",
    "?q=1": "/app/page?q=1",
    "/a#part": "/a",
    "//x.test/a": "/a",
    "x.test/state/cart": "/state/cart",
    "state\\cart": "/app/state/cart",
    "/state/{id}": "/state/{id}",
    "{id}": "/app/{id}",
    "?q={q}": "/app/page?q={q}",
    "/s{?q,r}": "/s{?q,r}",
    "//x.test/a/{id}": "/a/{id}",
  };
  for (const [uri, path] of Object.entries(paths)) {
    assert.ok(refusal(uri).endsWith(` Write 'https://x.test${path}', which is location.origin + '${path}'.`), uri);
    assert.equal(own("https://x.test" + path), "https://x.test" + path, "what a message says to write is accepted");
  }
  const begins = [
    ...[
      "",
      " ",
      "#x",
      " #x",
      "//other.test/a",
      "https://",
      "https://x.test:99999/",
      "/.pagewire/a",
      "https://other.test/a",
    ],
    ...["localhost:3000/a", "https://{host}/", "https://other.test/{a}", "//other.test/{a}", "/.pagewire/{a}"],
  ];
  for (const uri of begins) assert.ok(refusal(uri).endsWith(" Write one that begins with 'https://x.test/'."), uri);

  document.base = "https://cdn.test/"; // by <base>
  assert.match(refusal("a/b"), / Write one that begins with 'https:\/\/x\.test\/'\.$/);
  globalThis.origin = "null";
  t.after(() => delete globalThis.origin);
  assert.match(refusal("/a"), / An opaque origin has no URIs\.$/);
});
