package e2e

import (
	"net/http"
	"sync"
	"testing"
)

// firstSigns are the first messages of an agent in the page, by kind; each leads to a session that
// lists.
var firstSigns = map[string]string{
	"connect": `
		const transport = pagewire.connect();
		const send = (message) => transport.send(message);
		transport.onmessage = (message) => take(message);`,
	"port": `
		const { port1, port2 } = new MessageChannel();
		const send = (message) => port1.postMessage(message);
		port1.onmessage = ({ data }) => take(data);
		postMessage({ type: "pagewire:connect" }, location.origin, [port2]);`,
	"envelope": `
		const send = (payload) =>
			postMessage({ channel: "mcp-default", type: "mcp", direction: "client-to-server", payload }, location.origin);
		const ready = new Promise((done) => addEventListener("message", ({ data }) => {
			if (data?.direction !== "server-to-client") return;
			if (data.payload === "mcp-server-ready") done();
			else take(data.payload);
		}));
		send("mcp-check-ready");
		await ready;`,
}

const initialize = `{ jsonrpc: "2.0", id: 1, method: "initialize", params: {
	protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "c", version: "1" } } }`

// The server holds the loader back until the wasm is requested: fetching one after the other would
// wait for ever.
func TestTheFirstSignOfAnAgentFetchesBothFiles(t *testing.T) {
	t.Parallel()
	for name, sign := range firstSigns {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked := make(chan struct{})
			var once sync.Once
			s := serve(t, page{script: field.script, hold: func(r *http.Request) {
				switch r.URL.Path {
				case "/pagewire.wasm":
					once.Do(func() { close(asked) })
				case "/pagewire.core.js":
					select {
					case <-asked:
					case <-r.Context().Done():
					}
				}
			}})
			run[int](open(t, noFlag, s), `
				let take;
				const answered = new Promise((done) => (take = ({ id }) => id === 1 && done(id)));`+sign+`
				send(`+initialize+`);
				return await answered;
			`)
			if n := s.fetches("/pagewire.wasm"); n != 1 {
				t.Errorf("the wasm was fetched %d times", n)
			}
		})
	}
}

// A message that an agent sends before the core exists is answered in the turn in which the core is
// ready.
func TestWhatWaitsForTheCoreIsAnsweredInItsFirstTurn(t *testing.T) {
	t.Parallel()
	each(t, modes, func(t *testing.T, m mode) {
		open(t, m, serve(t, field)).expectations(`
			const order = [];
			await new Promise((done) => {
				const take = (what) => order.push(what) === 3 && done();
				// Before timers and messages that were there first.
				const urgent = { priority: "user-blocking" };
				pagewire.addEventListener("ready", () => scheduler.postTask(() => take("the next turn"), urgent));
				const transport = pagewire.connect();
				transport.onmessage = ({ id }) => take(id);
				transport.send(` + initialize + `);
				transport.send({ jsonrpc: "2.0", method: "notifications/initialized" });
				transport.send({ jsonrpc: "2.0", id: 2, method: "resources/list" });
			});
			expect("order", order, [1, 2, "the next turn"]);
		`)
	})
}
