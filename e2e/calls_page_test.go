package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/cdproto/emulation"

	"github.com/pagewire/pagewire/bridge/testkit"
)

// An agent in a worker of the page calls a tool while the page stands still, and withdraws the
// call. It does not run, with the core in the page and in its worker. A call that is not withdrawn
// runs.
func TestCallsWithdrawnInThePage(t *testing.T) {
	t.Parallel()
	for name, policy := range map[string]string{"core in the page": "", "core in a worker": "script-src 'self' 'unsafe-inline' blob:"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := page{script: `
				document.modelContext.registerTool({ name: "pay", description: "d", inputSchema: { type: "object" }, execute: ({ order }) => { ran.push(order); return "paid"; } });
				const { port1, port2 } = new MessageChannel();
				globalThis.answers = [];
				const worker = globalThis.worker = new Worker(URL.createObjectURL(new Blob([` + "`" + `
					let port;
					const ask = (id, method, params) => port.postMessage({ jsonrpc: "2.0", id, method, params });
					const call = (id) => ask(id, "tools/call", { name: "pay", arguments: { order: id } });
					onmessage = ({ data, ports }) => {
						if (ports[0]) {
							port = ports[0];
							port.onmessage = ({ data }) => postMessage(data);
							return ask(0, "initialize", { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "w", version: "1" } });
						}
						for (let id = data; id < data + 20; id++) call(id);
						for (let id = data; id < data + 20; id += 2) ask(undefined, "notifications/cancelled", { requestId: id });
						fetch(self.origin + "/sent");
					};` + "`" + `])));
				worker.onmessage = ({ data }) => answers.push(data);
				worker.postMessage(0, [port1]);
				window.postMessage({ type: "pagewire:connect" }, origin, [port2]);`}
			if policy != "" {
				p.headers = map[string]string{"Content-Security-Policy": policy + "; worker-src 'self' blob:"}
			}
			var sent atomic.Bool
			s := serve(t, p)
			files := s.Config.Handler
			s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch r.URL.Path {
				case "/sent":
					sent.Store(true)
				case "/state":
					if sent.Load() {
						w.Write([]byte("sent"))
					}
				default:
					files.ServeHTTP(w, r)
				}
			})
			b := open(t, native, s)
			testkit.Eventually(t, "the agent has a session", func() bool { return run[int](b, "return answers.length") > 0 })
			if got := run[string](b, "return pagewire.stats?.core ?? ''"); got != "" && got != "ready" {
				t.Errorf("the core is %s", got)
			}
			// The page takes long from one task to the next, so its core in a worker is faster. With a core that starts
			// a call too early, every seventh round fails, so one of four runs passes.
			call(b, emulation.SetCPUThrottlingRate, emulation.SetCPUThrottlingRateParams{Rate: 30})
			for round := range 8 {
				// The page stands still until its worker has called, and has withdrawn half of the calls.
				first := 1 + 20*round
				sent.Store(false)
				run[any](b, fmt.Sprintf(`
					globalThis.ran = [];
					globalThis.answers = [];
					worker.postMessage(%d);
					const x = new XMLHttpRequest();
					do { x.open("GET", "/state", false); x.send(); } while (x.responseText !== "sent");`, first))
				testkit.Eventually(t, "the others are answered", func() bool { return run[int](b, "return answers.length") >= 10 })
				var want []string
				for id := first + 1; id < first+20; id += 2 {
					want = append(want, fmt.Sprint(id))
				}
				if got := run[string](b, "return ran.join()"); got != strings.Join(want, ",") {
					t.Errorf("it ran %s, want %s", got, want)
				}
				if got := run[string](b, "return JSON.stringify(answers)"); strings.Count(got, "paid") != 10 {
					t.Errorf("the answers are %s", got)
				}
			}
		})
	}
}
