package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/chromedp/chromedp/remote"

	"github.com/pagewire/pagewire/bridge/testkit"
	"github.com/pagewire/pagewire/e2e/bench/figure"
)

const (
	anyPage = "Pagewire, any page"
	alone   = "floor: the same page alone"
	visible = "floor: innerText"
)

// shows returns Pagewire for a page of site/shown.js, which knows nothing of it, and whose origin
// its user has named.
func shows(page string) rival {
	return rival{
		name: anyPage, kind: ours, html: "<script>const asked = '" + page + "'</script>" +
			inline("shown"),
		serve: func(ctx context.Context, r *rig) (*agent, error) {
			rules := filepath.Join(r.home, "parts.json")
			price := fmt.Appendf(nil,
				`{%q: {"price": {"path": "/page?kind=%d", "find": [{"css": "#c"}]}}}`, r.site.URL,
				len(movements)-1)
			if err := os.WriteFile(rules, price, 0o600); err != nil {
				return nil, err
			}
			return startAgent(ctx, r.env(), r.b.program(), "serve", "--log-level", "error", "--hub",
				local(r.port),
				"--chrome", r.browser.URL, "--shown", r.site.URL, "--parts", rules)
		},
		ready: func(ctx context.Context, r *rig) error {
			_,
				err := r.agent.read(ctx, r.shown())
			return err
		},
	}
}

func (r *rig) shown() string { return r.site.URL + "/.pagewire/shown" }

// movements are the kinds of site/shown.js, in its order. Each row's bound is the number of changes
// that may be told in a minute; true changes are told all.
var movements = []struct {
	name string
	most float64
}{
	{"an animation", 0}, {"a spinner by class", 0}, {"a style each frame", 0}, {"a fade", 0},
	{"a clock", 5},
	{"a clock in <time>", 5}, {"a video's time", 4}, {"an ad with a number", 6},
	{"an ad with other words", 6},
	{"an upload, and Done", 4}, {"a carousel by transform", 0}, {"a carousel by display", 12},
	{"the same HTML again", 0},
	{"a canvas", 0}, {"lines of a log (30 true changes)", 31},
	{"a price that nobody has picked", 6},
}

// shownPages are families about pages that know nothing of Pagewire.
func (b *bench) shownPages() []family {
	seconds, changes, rounds := 60, 40, 3
	if b.short {
		seconds, changes, rounds = 10, 10, 1
	}
	first := family{name: "shown: size", rounds: 1, rows: []row{
		{"lines", "shown: first look at 47 KB as lines", "B", goal{most: 1.05, of: visible}, ""},
		{"pre", "shown: first look at 47 KB as one `<pre>`", "B", goal{most: 1.05, of: visible},
			""},
	}}
	var looks, texts, bare figures
	first.prepare = func(ctx context.Context) { looks, texts = b.looks(ctx) }
	first.contenders = []contender{
		{anyPage, ours, func(context.Context) (figures, error) { return looks, nil }},
		{visible, floor, func(context.Context) (figures, error) { return texts, nil }},
	}
	told := &rig{rival: shows("changes"), b: b, changes: make(chan string)}
	busy := &rig{rival: shows("busy"), b: b}
	moving := family{name: "shown: movements", rounds: 1, limit: 3 * time.Minute,
		contenders: []contender{{anyPage, ours,
			func(ctx context.Context) (figures, error) { return b.movements(ctx, seconds) }}}}
	for i, m := range movements {
		moving.rows = append(moving.rows,
			row{strconv.Itoa(i), fmt.Sprintf("shown: told in %d s of %s", seconds, m.name), "",
				goal{most: m.most, exact: m.most == 0}, ""})
	}
	picked := fmt.Sprintf("shown: told in %d s of a price that its user has picked", seconds)
	moving.rows = append(moving.rows,
		row{"picked", picked, "", goal{most: float64(seconds - 1), least: true}, ""})
	return []family{first,
		{name: "shown: change", rounds: rounds, limit: 2 * time.Minute, rows: []row{
			{"p50", "shown: change to the agent's read, p50", "ms", goal{most: 300}, ""},
			{"p95", "shown: change to the agent's read, p95", "ms", goal{most: 1000}, ""},
		}, contenders: []contender{
			{anyPage, ours,
				func(ctx context.Context) (figures, error) { return told.tells(ctx, changes) }},
		}},
		{name: "shown: processor", rounds: rounds, limit: 2 * time.Minute, rows: []row{
			{"first", "shown: first look at 10,000 elements, main thread", "ms", goal{most: 80},
				""},
			{"next", "shown: look after one change there, main thread", "ms", goal{most: 2}, ""},
		}, contenders: []contender{
			{anyPage, ours, func(ctx context.Context) (got figures, err error) {
				got, err = b.lookTimes(ctx, changes/2)
				bare = figures{"first": got["styles"]}
				return got, err
			}},
			{"floor: four styles and the box of each", floor,
				func(context.Context) (figures, error) { return bare, nil }},
		}},
		{name: "shown: watched", rounds: 1, limit: 3 * time.Minute, rows: []row{
			{"busy", "shown: main thread busy, page that ticks once a second", "%", goal{most: 1},
				""},
		}, contenders: []contender{
			{anyPage, ours,
				func(ctx context.Context) (figures,
					error) {
					return busy.busy(ctx, seconds, true)
				}},
			{alone, floor,
				func(ctx context.Context) (figures,
					error) {
					return busy.busy(ctx, seconds, false)
				}},
		}},
		moving,
	}
}

// looks returns the sizes of two pages' looks, and of their visible texts.
func (b *bench) looks(ctx context.Context) (looks, texts figures) {
	looks, texts = figures{}, figures{}
	for _, page := range []string{"lines", "pre"} {
		r := &rig{rival: shows(page), b: b}
		limited, cancel := context.WithTimeout(ctx, time.Minute)
		err := r.open(limited)
		var text string
		if err == nil {
			text, err = r.agent.read(limited, r.shown())
		}
		var inner struct{ Result struct{ Value string } }
		if err == nil {
			err = r.inTab(limited, r.target, func(call call) error {
				return call("Runtime.evaluate",
					map[string]any{"expression": "document.body.innerText"}, &inner)
			})
		}
		cancel()
		if err != nil {
			fmt.Fprintf(os.Stderr, "        %s: %v\n", page, err)
			continue
		}
		looks[page], texts[page] = float64(len(text)), float64(len(inner.Result.Value))
	}
	return looks, texts
}

// watch opens the rig, and subscribes to what its page shows.
func (r *rig) watch(ctx context.Context) error {
	if err := r.openOnce(ctx); err != nil {
		return err
	}
	return r.agent.subscribe(ctx, r.shown())
}

// tells measures from a change of the page until the agent was told and has read it.
func (r *rig) tells(ctx context.Context, n int) (figures, error) {
	if err := r.watch(ctx); err != nil {
		return nil, err
	}
	var times []float64
	for i := range n {
		time.Sleep(time.Duration(300+i*379%900) * time.Millisecond)
		r.nonce++
		// a text that differs in numbers alone is restless
		letter := func(digit rune) rune { return digit - '0' + 'a' }
		word := "state " + strings.Map(letter, strconv.Itoa(1000+r.nonce))
		began := time.Now()
		r.changes <- word
		for text := ""; !strings.Contains(text, word); {
			select {
			case <-r.agent.told:
			case <-ctx.Done():
				return nil, fmt.Errorf("it is not told of %q: %w", word, ctx.Err())
			}
			var err error
			if text, err = r.agent.read(ctx, r.shown()); err != nil {
				return nil, err
			}
		}
		times = append(times, ms(began))
	}
	return figures{"p50": quantile(times, 0.5), "p95": quantile(times, 0.95)}, nil
}

// A call is a command in a tab's session, with its result.
type call func(method string, params, result any) error

// run evaluates an expression in the page.
func (call call) run(expression string) error {
	var got struct{ ExceptionDetails *struct{ Text string } }
	err := call("Runtime.evaluate", map[string]any{"expression": expression, "awaitPromise": true},
		&got)
	if err == nil && got.ExceptionDetails != nil {
		err = errors.New(got.ExceptionDetails.Text)
	}
	return err
}

// busy returns the processor's time of the page's main thread, in ms.
func (call call) busy() (float64, error) {
	var list struct {
		Metrics []struct {
			Name  string
			Value float64
		}
	}
	if err := call("Performance.getMetrics", nil, &list); err != nil {
		return 0, err
	}
	for _, m := range list.Metrics {
		if m.Name == "TaskDuration" {
			return m.Value * 1000, nil
		}
	}
	return 0, errors.New("the browser has no TaskDuration")
}

// took returns the processor's time that the page's main thread works meanwhile, in ms.
func (call call) took(work func() error) (float64, error) {
	before, err := call.busy()
	if err == nil {
		err = work()
	}
	after, failed := call.busy()
	return after - before, errors.Join(err, failed)
}

// measured is inTab for commands whose time counts.
func (r *rig) measured(ctx context.Context, do func(call call) error) error {
	return r.inTab(ctx, r.target, func(call call) error {
		if err := call("Performance.enable", map[string]any{"timeDomain": "threadTicks"},
			nil); err != nil {
			return err
		}
		return do(call)
	})
}

// styles asks for what a look at all elements cannot do without.
const styles = `for (const e of document.body.querySelectorAll("*")) {
	const { display, color, opacity, visibility } = getComputedStyle(e);
	e.getBoundingClientRect();
}`

// lookTimes measures the first look at a page, and what a change of one text costs more if the page
// is watched.
func (b *bench) lookTimes(ctx context.Context, n int) (got figures, err error) {
	r := &rig{rival: shows("rows=10000"), b: b}
	// Whatever an agent has read once is followed, and so is the next document.
	r.ready = func(ctx context.Context, r *rig) error {
		uris, err := r.offered(ctx, "shown")
		if err == nil && len(uris) == 0 {
			err = errors.New("nothing is listed")
		}
		return err
	}
	if err := r.open(ctx); err != nil {
		return nil, err
	}
	defer r.browser.Close()
	uri, settled := map[string]any{"uri": r.shown()}, "new Promise((done) => setTimeout(done, 700))"
	got = figures{}
	err = r.measured(ctx, func(call call) error {
		if err := until(ctx, 200*time.Millisecond,
			func() error { return call.run("c; " + settled) }); err != nil {
			return err
		}
		if got["styles"], err = call.took(func() error { return call.run(styles) }); err != nil {
			return err
		}
		if got["first"],
			err = call.took(func() error {
			_,
				err := r.agent.read(ctx, r.shown())
			return err
		}); err != nil {
			return err
		}
		change := func(watched bool) (float64, error) {
			var times []float64
			for i := range n {
				one, err := call.took(func() error {
					err := call.run(fmt.Sprintf("c.textContent = 'state %s'; ",
						strings.Repeat("a", i+1)) + settled)
					if err == nil && watched {
						_, err = r.agent.read(ctx, r.shown())
					}
					return err
				})
				if err != nil {
					return 0, err
				}
				times = append(times, one)
			}
			return quantile(times, 0.5), nil
		}
		for _, method := range []string{"resources/unsubscribe", "resources/subscribe"} {
			if _, err := r.agent.ask(ctx, method, uri); err != nil {
				return err
			}
			watched := method == "resources/subscribe"
			if watched {
				if _, err := r.agent.read(ctx, r.shown()); err != nil {
					return err
				}
			}
			took, err := change(watched)
			if err != nil {
				return err
			}
			got["next"] = took - got["next"]
		}
		return nil
	})
	return got, err
}

// busy measures the part of the time that the page's main thread works.
func (r *rig) busy(ctx context.Context, seconds int, watched bool) (figures, error) {
	if err := r.watch(ctx); err != nil {
		return nil, err
	}
	if !watched {
		if _, err := r.agent.ask(ctx, "resources/unsubscribe",
			map[string]any{"uri": r.shown()}); err != nil {
			return nil, err
		}
	}
	if _, err := r.agent.read(ctx, r.shown()); err != nil {
		return nil, err
	}
	time.Sleep(3 * time.Second)
	part := 0.0
	err := r.measured(ctx, func(call call) error {
		var began time.Time
		worked, err := call.took(func() error {
			began = time.Now()
			time.Sleep(time.Duration(seconds) * time.Second)
			return nil
		})
		part = 100 * worked / ms(began)
		return err
	})
	return figures{"busy": part}, err
}

// movements counts what an agent is told of pages that move by themselves, each in a window of its
// own.
func (b *bench) movements(ctx context.Context, seconds int) (figures, error) {
	r := &rig{rival: shows(""), b: b}
	if err := r.open(ctx); err != nil {
		return nil, err
	}
	for i := range movements {
		if _, err := r.command(ctx, "Target.createTarget", map[string]any{"newWindow": true,
			"url": r.site.URL + "/page?kind=" + strconv.Itoa(i)}); err != nil {
			return nil, err
		}
	}
	kinds, moves := map[string]string{}, regexp.MustCompile(`kind=(\d+)\n`) // by URI
	if err := until(ctx, 100*time.Millisecond, func() error {
		uris, err := r.offered(ctx, "shown")
		prices, failed := r.offered(ctx, "parts/price")
		err = errors.Join(err, failed)
		clear(kinds)
		for _, uri := range prices {
			kinds[uri] = "picked"
		}
		for _, uri := range uris {
			text, failed := r.agent.read(ctx, uri)
			err = errors.Join(err, failed)
			if m := moves.FindStringSubmatch(text); m != nil {
				kinds[uri] = m[1]
			}
		}
		if err == nil && len(kinds) <= len(movements) {
			err = fmt.Errorf("it shows %v", kinds)
		}
		return err
	}); err != nil {
		return nil, err
	}
	got := figures{}
	for uri, kind := range kinds {
		got[kind] = 0
		if err := r.agent.subscribe(ctx, uri); err != nil {
			return nil, err
		}
		if _, err := r.agent.read(ctx, uri); err != nil {
			return nil, err
		}
	}
	time.Sleep(2 * time.Second) // what has moved meanwhile
	for len(r.agent.updates) > 0 {
		<-r.agent.updates
	}
	for end := time.After(time.Duration(seconds) * time.Second); ; {
		select {
		case uri := <-r.agent.updates:
			got[kinds[uri]]++
			if _, err := r.agent.read(ctx, uri); err != nil {
				return nil, err
			}
		case <-end:
			return got, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// soak opens ten tabs that change each second, with an agent that watches them and reads what it is
// told of, and ten others alone. It prints what both cost at the start, in the middle and at the
// end.
func (b *bench) soak(ctx context.Context, minutes int) error {
	opening, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	bare := rival{name: alone, kind: floor, html: shows("").html, ready: nothing}
	rigs := []*rig{{rival: shows(""), b: b}, {rival: bare, b: b}}
	for _, r := range rigs {
		if err := r.open(opening); err != nil {
			return err
		}
		for i := range manyTabs {
			if _, err := r.openTab(opening, "/page?busy="+strconv.Itoa(i)); err != nil {
				return err
			}
		}
	}
	r := rigs[0]
	var uris []string
	if err := until(opening, 100*time.Millisecond, func() (err error) {
		if uris, err = r.offered(opening, "shown"); err == nil && len(uris) <= manyTabs {
			err = fmt.Errorf("it lists %v", uris)
		}
		return err
	}); err != nil {
		return err
	}
	for _, uri := range uris {
		if err := r.agent.subscribe(opening, uri); err != nil {
			return err
		}
		if _, err := r.agent.read(ctx, uri); err != nil {
			return err
		}
	}
	var reads atomic.Int64
	go func() {
		for {
			select {
			case uri := <-r.agent.updates:
				if _, err := r.agent.read(ctx, uri); err == nil {
					reads.Add(1)
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	time.Sleep(10 * time.Second)
	fmt.Println(
		"| tabs | minute | JS heap of a tab | renderers | gateway | CPU of renderers | CPU of gateway | reads |\n|" +
			strings.Repeat("---|", 8))
	for half := range 3 {
		for _, r := range rigs {
			s, err := r.sample(ctx)
			if err != nil {
				return err
			}
			fmt.Printf("| %s | %.1f | %s MB | %s MB | %s MB | %.1f s | %.2f s | %d |\n", r.name,
				float64(half*minutes)/2,
				figure.Number(s["heap"]), figure.Number(s["renderers"]),
				figure.Number(s["gateway"]), s["cpu"],
				s["gateway cpu"], reads.Load())
		}
		if half < 2 {
			select {
			case <-time.After(time.Duration(minutes) * time.Minute / 2):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	return nil
}

// offered lists the URIs of what the user offers.
func (r *rig) offered(ctx context.Context, what string) (uris []string, err error) {
	text, err := r.agent.ask(ctx, "resources/list", map[string]any{})
	var list struct{ Resources []struct{ URI string } }
	if err == nil {
		err = json.Unmarshal(text, &list)
	}
	for _, l := range list.Resources {
		if strings.HasPrefix(l.URI, r.site.URL+"/.pagewire/"+what) {
			uris = append(uris, l.URI)
		}
	}
	return uris, err
}

// sample measures memory in MB, and CPU time in seconds. The browser's garbage is collected before.
func (r *rig) sample(ctx context.Context) (figures, error) {
	got := figures{}
	text, err := r.command(ctx, "Target.getTargets", nil)
	var list struct {
		TargetInfos []struct{ TargetID, URL string }
	}
	if err == nil {
		err = json.Unmarshal(text, &list)
	}
	tabs := 0.0
	for _, t := range list.TargetInfos {
		if err != nil || !strings.Contains(t.URL, "?busy") {
			continue
		}
		var usage struct{ UsedSize float64 }
		err = r.inTab(ctx, t.TargetID, func(call call) error {
			if err := call("HeapProfiler.collectGarbage", nil, nil); err != nil {
				return err
			}
			return call("Runtime.getHeapUsage", nil, &usage)
		})
		got["heap"] += usage.UsedSize / 1e6
		tabs++
	}
	if err != nil {
		return nil, err
	}
	got["heap"] /= tabs
	bytes, err := r.renderers(ctx)
	if err != nil {
		return nil, err
	}
	got["renderers"] = bytes / 1e6
	processes, err := r.processes(ctx)
	for _, p := range processes {
		got["cpu"] += p.CPUTime
	}
	if r.agent != nil && err == nil {
		bytes, err = resident(r.entry())
		got["gateway"], got["gateway cpu"] = bytes/1e6, cpuOf(testkit.Processes(r.entry()))
	}
	return got, err
}

// cpuOf is the CPU time in seconds that processes have taken.
func cpuOf(pids []int) (seconds float64) {
	for _, pid := range pids {
		text, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
		fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
		for _, i := range []int{11, 12} { // user and system, in hundredths
			if i < len(fields) {
				ticks, _ := strconv.ParseFloat(fields[i], 64)
				seconds += ticks / 100
			}
		}
	}
	return seconds
}

// inTab gives a function the commands of a tab's own session.
func (r *rig) inTab(ctx context.Context, id string, do func(call call) error) error {
	conn, err := remote.DialContext(ctx, r.browser.URL)
	if err != nil {
		return err
	}
	defer conn.Close()
	c := &bare{conn: conn}
	text, err := c.call(ctx, "", "Target.attachToTarget",
		map[string]any{"targetId": id, "flatten": true})
	if err == nil {
		err = json.Unmarshal(text, &c.session)
	}
	if err != nil {
		return err
	}
	return do(func(method string, params, result any) error {
		given, _ := params.(map[string]any)
		text, err := c.call(ctx, c.session.ID, method, given)
		if err == nil && result != nil {
			err = json.Unmarshal(text, result)
		}
		return err
	})
}
