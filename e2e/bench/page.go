package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"
)

// pages are families in which a page and its agents are in one window. Both libraries get the same
// page, the same work and the same driver, in page/page.ts.
func (b *bench) pages() []family {
	we, they, reads, larges := libraries[0], libraries[1], 2000, 20
	if b.short {
		reads, larges = 1000, 8
	}
	does := func(name string, k kind, script, job, wire string, n int) contender {
		head := ""
		if script != "" {
			head = `<script src="` + script + `"></script>`
		}
		expression := fmt.Sprintf("bench.%s(bench.%s, %d)", job, wire, n)
		return contender{name, k,
			func(ctx context.Context) (figures, error) { return b.visit(ctx, head, expression) }}
	}
	both := func(job string, n int) []contender {
		return []contender{does(we.name, ours, we.path, job, "overWindow", n),
			does(they.name, peer, they.path, job, "overWindow", n)}
	}
	return []family{
		{
			name: "page: read over window.postMessage",
			rows: []row{
				{"p50", "read over window.postMessage, p50", "us", goal{most: 1.5, of: windowFloor},
					""},
				{"first", "read over window.postMessage, mean of the first 300", "us",
					goal{most: 0.7, of: best}, ""},
				{"p99", "read over window.postMessage, p99", "us",
					goal{most: 0.7, of: best, within: windowFloor}, ""},
			},
			contenders: append(both("read", reads),
				does(windowFloor, floor, "", "echo", "windowEcho", reads)),
		},
		{
			name: "page: read over a MessagePort",
			rows: []row{{"p50", "read over a MessagePort, p50", "us",
				goal{most: 1.5, of: portFloor}, ""}},
			contenders: []contender{
				does(we.name, ours, we.path, "read", "overPort", reads),
				{they.name, peer, nil},
				does(portFloor, floor, "", "echo", "portEcho", reads),
			},
		},
		{
			name: "page: read of 1 MB",
			rows: []row{{"ms", "read of 1 MB over window.postMessage", "ms",
				goal{most: 1.12, of: windowFloor}, ""}},
			contenders: append(both("large", larges),
				does(windowFloor, floor, "", "largeEcho", "windowEcho", larges)),
		},
		{
			name: "page: 10,000 changes in a loop",
			rows: []row{
				{"subscriber messages", "10,000 changes: messages to a subscriber", "",
					goal{most: 10}, ""},
				{"nobody messages", "10,000 changes: messages without a subscription", "",
					goal{exact: true}, ""},
				{"subscriber busy", "10,000 changes: main thread busy", "ms",
					goal{most: 0.04, of: best}, ""},
			},
			contenders: both("notify", 10_000),
		},
	}
}

const (
	windowFloor = "floor: postMessage echo"
	portFloor   = "floor: MessageChannel echo"
)

// visit opens a page with `head` in its head, and returns the figures of an expression that runs
// after the load. The page itself reports them, and no debugger is attached: with one, the first
// postMessage alone takes 2 ms more, for its stack trace.
func (b *bench) visit(ctx context.Context, head, expression string) (figures, error) {
	all, err := b.visits(ctx, 1, head, expression)
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// visits opens the page n times, one after the other, in one new profile. The browser may keep
// cacheable files for ever.
func (b *bench) visits(ctx context.Context, n int, head, expression string) (all []figures,
	err error) {
	results := make(chan string, 1)
	server := httptest.NewServer(b.reporting(head, expression, results))
	defer server.Close()

	profile, err := chromedp.CallBrowser(b.chromium, target.CreateBrowserContext,
		target.CreateBrowserContextParams{})
	if err != nil {
		return nil, err
	}
	id := profile.BrowserContextID
	defer chromedp.CallBrowser(b.chromium, target.DisposeBrowserContext,
		target.DisposeBrowserContextParams{BrowserContextID: id})
	for range n {
		tab, err := chromedp.CallBrowser(b.chromium, target.CreateTarget,
			target.CreateTargetParams{URL: server.URL, BrowserContextID: id})
		if err != nil {
			return nil, err
		}
		select {
		case text := <-results:
			got := figures{}
			if err := json.Unmarshal([]byte(text), &got); err != nil || len(got) == 0 {
				return nil, fmt.Errorf("the page reports %q", text)
			}
			all = append(all, got)
		case <-ctx.Done():
			return nil, fmt.Errorf("the page has not reported: %w", ctx.Err())
		}
		if _, err := chromedp.CallBrowser(b.chromium, target.CloseTarget,
			target.CloseTargetParams(tab)); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// reporting serves the page and the run's files, and receives the page's report.
func (b *bench) reporting(head, expression string, results chan<- string) http.Handler {
	html := `<!doctype html><title>bench</title><link rel=icon href=data:,>` + head +
		`<script src="/bench.js"></script><script>bench.report(() => ` + expression + `)</script>`
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Isolated pages have a clock with steps of 5 us; other pages one with steps of 100 us.
		w.Header().Set("Cross-Origin-Opener-Policy", "same-origin")
		w.Header().Set("Cross-Origin-Embedder-Policy", "require-corp")
		switch r.URL.Path {
		case "/":
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			fmt.Fprint(w, html)
		case "/result":
			text, _ := io.ReadAll(r.Body)
			select {
			case results <- string(text):
			default: // only the first report is awaited
			}
		default:
			w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
			b.ServeHTTP(w, r)
		}
	})
}
