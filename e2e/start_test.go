package e2e

import "testing"

// What a start costs. The times are logged, since a shared machine's decide nothing; the order of the fetches is
// checked: the wasm is on its way while the loader is, once.
func TestStart(t *testing.T) {
	t.Parallel()
	for _, m := range modes {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, field)
			b := open(t, m, s)
			got := run[struct {
				Usable, Listed        float64
				WasmStart, LoaderDone float64
			}](b, `
				await agent.sleep(200);
				const start = performance.now();
				const a = await agent.connect("legacy");
				await a.list();
				const listed = performance.now() - start;
				await agent.sleep(50);
				// Its text is here, so this is what compiling and running it takes, up to the first registration.
				const script = await (await fetch("/pagewire.js")).text();
				pagewire.uninstall();
				const begin = performance.now();
				(0, eval)(script);
				navigator.modelContext.registerResource({ uri, name: "Again", read: () => "" });
				const usable = performance.now() - begin;
				const [loader] = performance.getEntriesByName(location.origin + "/pagewire.core.js"), wasm = performance.getEntriesByName(location.origin + "/pagewire.wasm");
				return { usable, listed, wasmStart: wasm[0].startTime, loaderDone: loader.responseEnd };
			`)
			t.Logf("the API was usable %.1f ms after its script was there, the first list %.0f ms after connecting",
				got.Usable, got.Listed)
			want := 1
			if thisEngine == "webkit" {
				want = 2 // a fetch does not find there what a link preloads, whatever its mode
			}
			if n := s.fetches("/pagewire.wasm"); got.WasmStart > got.LoaderDone || n != want {
				t.Errorf("%+v: the wasm is fetched behind the loader, or not %d times but %d", got, want, n)
			}
		})
	}
}
