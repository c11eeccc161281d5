package fleet

import (
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"

	"github.com/pagewire/pagewire/bridge/testkit"
	"github.com/pagewire/pagewire/bridge/testkit/browsertest"
	"github.com/pagewire/pagewire/bridge/testkit/testcmd"
	"github.com/pagewire/pagewire/e2e/bench/figure"
)

// A place has pages, agents, and the processes between them.
type place struct {
	processes []*process
	count     string                               // the metric that counts what has arrived
	arrive    func(i, resources int) *testkit.Page // nil for a tab of a browser
	agent     func() *agent
	first     string // the origin of the first page
}

func atDaemon(b *testing.B) place {
	dir, n := b.TempDir(), &process{listen: testkit.Addr(b), admin: testkit.Addr(b)}
	n.cmd = testcmd.Command(filepath.FromSlash("../../../bin/pagewire"), "serve", "--hub", n.listen,
		"--http", n.admin, "--no-token", "--allow-origin", "https://*.example", "--log-level", "error")
	n.cmd.Env, n.cmd.Stderr = []string{"HOME=" + dir, "XDG_RUNTIME_DIR=" + dir}, os.Stderr
	n.start(b)
	host := func(i int) string { return fmt.Sprintf("https://app%d.example", i%100) }
	return place{[]*process{n}, "resources", func(i, resources int) *testkit.Page {
		p := testkit.NewPage(b, uris(host(i), resources))
		p.Dial(n.listen, host(i), "")
		return p
	}, func() *agent { return openAgent(b, n.admin, "") }, host(0)}
}

// inChromium is a daemon with tabs of a browser.
func inChromium(b *testing.B) place {
	p := atDaemon(b)
	const script = `<script src="/pagewire.js" data-gateway="ws://%s"></script><script>for (let i = 0; i < 10; i++)
		document.modelContext.registerResource({ uri: location.origin + "/cart/" + i, name: "state", read: () => "0" })</script>`
	files := http.FileServer(http.Dir("../../../dist"))
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			fmt.Fprintf(w, script, p.processes[0].listen)
		} else {
			files.ServeHTTP(w, r)
		}
	}))
	b.Cleanup(site.Close)
	chromium, closeBrowser, err := browsertest.Launch(b.Context(), browsertest.Options{})
	testkit.OK(b, err)
	b.Cleanup(closeBrowser)
	p.first, p.arrive = site.URL, func(int, int) *testkit.Page {
		testkit.Must(chromedp.CallBrowser(chromium, target.CreateTarget,
			target.CreateTargetParams{URL: site.URL}))(b)
		return nil
	}
	return p
}

// atNodes are two nodes. Each page has a user, and the agents are those of the first.
func atNodes(b *testing.B) place {
	c := startCluster(b, 2)
	return place{c.nodes, "pages", func(i, resources int) *testkit.Page {
		p := testkit.NewPage(b, uris(origin, resources))
		p.Dial(c.nodes[i%2].listen, origin, c.login.Ticket(fmt.Sprint("user", i), origin))
		return p
	}, func() *agent { return openAgent(b, c.nodes[1].listen, c.login.Token("user0", "pages:read")) }, origin}
}

// grow returns the figures of a place with so many pages, resources of each, and agents.
func (p place) grow(b *testing.B, pages, resources, agents int) map[string]float64 {
	sum := func(of func(n *process) float64) (all float64) {
		for _, n := range p.processes {
			all += of(n)
		}
		return all
	}
	spent := func() float64 { return sum(func(n *process) float64 { return n.spent(b).Seconds() * 1e6 }) }
	pss := func() float64 { return sum(func(n *process) float64 { return float64(n.pss(b)) / 1024 }) }
	time.Sleep(2 * time.Second) // for the end of its start
	before, empty, want := spent(), pss(), pages
	if p.count == "resources" {
		want *= resources
	}
	var list []*testkit.Page
	for i := range pages {
		list = append(list, p.arrive(i, resources))
	}
	testkit.Eventually(b, "all have arrived", func() bool {
		// asking costs time, too
		time.Sleep(100*time.Millisecond + time.Duration(want)*50*time.Microsecond)
		return sum(func(n *process) float64 { return n.metric(p.count) }) == float64(want)
	})
	time.Sleep(time.Second) // for the work that is due then
	got := map[string]float64{"arrive": max(spent()-before, float64(tick.Microseconds())) / 1000}
	watched := slices.Sorted(maps.Keys(uris(p.first, min(resources, 10))))
	var all []*agent
	for len(all) < agents {
		all = append(all, p.agent())
		for _, uri := range watched {
			all[len(all)-1].watch(uri)
		}
	}
	got["memory"] = max(pss()-empty, 0.1)
	each := func(do func(uri string)) float64 {
		before, turn := spent(), 0
		for ; turn < 500 && (turn%50 > 0 || spent()-before < 1e6); turn++ {
			do(watched[turn%len(watched)])
		}
		return max(spent()-before, 1) / float64(turn)
	}
	got["read"] = each(func(uri string) { all[0].ask("resources/read", fmt.Sprintf(`{"uri":%q}`, uri)) })
	got["page"] = each(func(string) { all[0].ask("resources/list", "{}") })
	for cursor, more := "{}", true; more; {
		text := all[0].ask("resources/list", cursor)
		got["list"] += float64(len(text)) / 1024
		_, cursor, more = strings.Cut(text, `"nextCursor":`)
		cursor, _, _ = strings.Cut(cursor, "}")
		cursor = `{"cursor":` + strings.Split(cursor, ",")[0] + "}"
	}
	at := slices.IndexFunc(list, func(p *testkit.Page) bool { return p != nil && p.Watches(watched[0]) })
	if at >= 0 {
		got["change"] = each(func(uri string) {
			time.Sleep(12 * time.Millisecond) // a URI's next change after 100 ms is told at once
			list[at].Touch(uri)
			for _, a := range all {
				testkit.Receive(b, "an agent is told", a.told)
			}
		})
	}
	return got
}

// BenchmarkGrowth is how the figures of a daemon, and of two nodes, grow with the number n of tabs,
// agents and resources: the exponent of n, by least squares of the logarithms, and the steepest
// slope between neighbours. It writes a part of bench.md. The figures are memory, processor time
// and bytes, which a busy machine changes little.
func BenchmarkGrowth(b *testing.B) {
	run := figure.Run{Command: "make bench GROWTH=1", Began: time.Now(), Machine: figure.Machine(),
		How: "; the exponent of n in what n of them cost; memory below 0.1 MB counts as 0.1 MB"}
	dir := figure.Docs
	for _, by := range []struct {
		name  string
		place func(*testing.B) place
		sizes []int
	}{
		{"tabs", atDaemon, []int{1, 10, 100, 1000}}, {"tabs of Chromium", inChromium, []int{1, 10, 100}},
		{"agents", atDaemon, []int{1, 10, 100}},
		{"resources", atDaemon, []int{10, 100, 1000, 10_000, 100_000}},
		{"pages at two nodes", atNodes, []int{10, 100, 1000, 5000}},
	} {
		var values []map[string]float64
		for _, n := range by.sizes {
			b.Run(fmt.Sprint(by.name, "/", n), func(b *testing.B) {
				pages, resources, agents := n, 10, 1
				switch by.name {
				case "agents":
					pages, agents = 1, n
				case "resources":
					pages = (n + 9999) / 10_000 // which is a page's limit
					resources = n / pages
				}
				values = append(values, by.place(b).grow(b, pages, resources, agents))
			})
		}
		if len(values) < len(by.sizes) {
			dir = "dist/bench" // a partial run does not replace a complete one
			continue
		}
		for _, f := range [][3]string{
			{"memory", "memory", "MB"}, {"arrive", "processor time of all arrivals", "ms"},
			{"read", "processor time of a read", "us"},
			{"page", "processor time of a page of the list", "us"},
			{"change", "processor time of a change that all agents watch", "us"},
			{"list", "the whole list", "KB"},
		} {
			var x, y []float64
			var all []string
			for i, n := range by.sizes {
				v := values[i][f[0]]
				x, y = append(x, math.Log(float64(n))), append(y, math.Log(v))
				all = append(all, fmt.Sprint(figure.Number(float64(n)), ": ", figure.Quantity(v, f[2])))
			}
			if math.IsInf(y[0], 0) || math.IsNaN(y[0]) {
				continue // tabs of a browser change nothing
			}
			slope, steepest := exponent(x, y)
			run.Rows = append(run.Rows, figure.Row{Name: "growth with " + by.name + ": " + f[1],
				Figure: fmt.Sprintf("n^%.2f", slope), Goal: "≤ n^1.1", Missed: max(slope, steepest) > 1.1,
				All: fmt.Sprintf("steepest n^%.2f; %s", steepest, strings.Join(all, "; "))})
			b.Log(run.Rows[len(run.Rows)-1])
		}
	}
	b.Chdir("../../..")
	run.Commit = figure.Commit()
	testkit.OK(b, figure.Keep(dir, "growth", run))
	b.ReportMetric(0, "ns/op")
}

// exponent returns the slope of a line by least squares, and the steepest between neighbours.
func exponent(x, y []float64) (slope, steepest float64) {
	var sx, sy, sxx, sxy float64
	for i := range x {
		sx, sy, sxx, sxy = sx+x[i], sy+y[i], sxx+x[i]*x[i], sxy+x[i]*y[i]
		if i > 0 {
			steepest = max(steepest, (y[i]-y[i-1])/(x[i]-x[i-1]))
		}
	}
	n := float64(len(x))
	return (n*sxy - sx*sy) / (n*sxx - sx*sx), steepest
}
