package main

const intro = `# Pagewire in every browser engine

Written by ` + "`make test-engines`" + `, which runs the same tests, on the same pages, in three engines: Chromium by the Chrome
DevTools Protocol, Firefox by WebDriver BiDi, WebKitGTK by WebDriver. The numbers are tests that ran and passed; where
one failed it says so. Chromium has more, since it alone has a WebMCP of its own, which most tests are run with and
without.

`

const differences = `
## What differs

* **WebMCP.** Firefox and WebKit have no ` + "`document.modelContext`" + ` of their own: Pagewire brings a minimal one there.
  Firefox's own ` + "`navigator.modelContext`" + ` is behind a preference, and of an older shape: a page that has that shape is
  tested in all three.
* **A policy without 'wasm-unsafe-eval'.** WebKit compiles wasm there and refuses to instantiate it, where the others
  refuse both. Pagewire takes either for what it is, and runs its core in a worker.
* **Two clients with the same ids on one window** (a transport of @mcp-b, which has no sessions). WebKit runs timers
  between the messages that wait in a window's queue, so that a read may be answered before the other client's request
  with the same id is there; that client then takes the answer for its own. In Chromium and Firefox such a request is
  refused. Clients with a port, or with ids of their own, are not concerned.
* **Hidden tabs.** Chromium and Firefox throttle each timer, WebKit those that are nested deeply. The last change is
  announced in all.
* **The extension.** Firefox runs an event page in place of a service worker. Its content scripts can read what an
  extension keeps for good, which no setting forbids there: so the secret for the way without a native host is not kept,
  and the native host is the one way to a gateway. The sites that are allowed for good are kept, and a web page that has
  taken its process over can read which those are. WebKitGTK has no extensions; Safari's were not tried.
`
