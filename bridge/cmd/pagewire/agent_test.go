package main

// ls, read and watch against a real daemon, in this process.

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/cobra"

	"github.com/pagewire/pagewire/bridge/agents"
	"github.com/pagewire/pagewire/bridge/cmd/internal/cli"
	"github.com/pagewire/pagewire/bridge/desktop/daemon"
	"github.com/pagewire/pagewire/bridge/desktop/hook"
	"github.com/pagewire/pagewire/bridge/gateway"
	"github.com/pagewire/pagewire/bridge/testkit"
)

const (
	cart  = "https://shop.example/state/cart"
	image = "https://shop.example/image"
)

// A running is a daemon with one page.
type running struct {
	t    testing.TB
	addr string
	g    *gateway.Gateway
	page *testkit.Page
	stop func()
}

// start runs a daemon for addr, or with "" for a free port in a new home. It stops with the test, or by stop.
func start(t testing.TB, addr, text string) *running {
	t.Helper()
	if addr == "" {
		testkit.Home(t)
		addr = testkit.Addr(t)
	}
	r := &running{t: t, addr: addr, g: gateway.New(gateway.Options{})}
	ctx, cancel := context.WithCancel(context.Background())
	r.page = testkit.NewPage(t, nil)
	r.page.Describe(cart, map[string]any{"name": "cart", "title": "Cart \x1b[31m", "mimeType": "text/plain"})
	r.page.Describe(image, map[string]any{"name": "image", "mimeType": "image/png"})
	r.page.Describe("https://shop.example/item/{id}", map[string]any{"name": "item"})
	r.page.Attach(func(send func([]byte)) (testkit.Receiver, error) {
		return r.g.Attach(gateway.PageInfo{Tab: "a", Origin: "https://shop.example", URL: "https://shop.example/",
			Title: "Shop", Transport: "test"}, send)
	})
	r.page.Offer(image, "\x89PNG\x00")
	r.page.Offer(cart, text)
	r.page.Add("https://shop.example/item/{id}", func(context.Context, string) (string, error) {
		return "an item", nil
	})
	over := make(chan error, 1)
	started := make(chan struct{})
	go func() { over <- daemon.Run(ctx, r.options(func() { close(started) })) }()
	r.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-over; err != nil {
			t.Errorf("the daemon: %v", err)
		}
		r.g.Close()
	})
	t.Cleanup(r.stop)
	testkit.Ends(t, "the daemon listens", started)
	return r
}

// options returns the options of a daemon that stays without agents and has no port.
func (r *running) options(started func()) daemon.Options {
	var hooks hook.Agents
	local := http.NewServeMux()
	local.Handle("POST "+hook.Path, hooks.Handler(r.g))
	return daemon.Options{
		Hub: r.addr, Version: versionName(), Foreground: "the test", Started: started, Local: local,
		Busy: func() bool { return false }, Log: slog.New(slog.DiscardHandler),
		Serve: func(ctx context.Context, h daemon.Hello, in io.Reader, out io.Writer, work func(daemon.Session)) error {
			transport := gateway.TransportStdio
			if h.As == daemon.AsCommand {
				transport = gateway.TransportCommand
			}
			agent, err := r.g.Connect(transport)
			if err != nil {
				return err
			}
			if h.As == daemon.AsAgent {
				defer hooks.Add(h.PID, agent)()
			}
			work(agent)
			return agents.Lines(ctx, agent, r.g.MessageBytes(), in, out)
		},
	}
}

func (r *running) set(text string) { r.page.Set(cart, text) }

func (r *running) command(args ...string) (status int, stdout, stderr string) {
	return run(append(args, "--hub", r.addr)...)
}

func TestATerminalIsOnlyWrittenTo(t *testing.T) {
	var out strings.Builder
	if err := show(&out, true, cart, []byte("a\tb\r\n\x1b]0;owned\x07"), false); err != nil ||
		out.String() != "a\tb\n\uFFFD]0;owned\uFFFD\n" {
		t.Errorf("%q, %v", out.String(), err)
	}
	out.Reset()
	if err := show(&out, true, image, []byte{0, 1}, true); err == nil || out.Len() > 0 ||
		!strings.Contains(err.Error(), "isn't text (2 bytes)") {
		t.Errorf("binary: %q, %v", out.String(), err)
	}
	for in, want := range map[string]string{"a\nb": "a b", "\x1b[2J": "\uFFFD[2J", "\u202Eevil": "\uFFFDevil",
		"grüße 漢": "grüße 漢"} {
		if got := cli.Plain(in); got != want {
			t.Errorf("cli.Plain(%q) = %q, want %q", in, got, want)
		}
	}
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567"} {
		if got := grouped(n); got != want {
			t.Errorf("grouped(%d) = %s, want %s", n, got, want)
		}
	}
}

// A watching is a running watch, with its output line by line.
type watching struct {
	t      testing.TB
	out    *bufio.Scanner
	errs   *testkit.Log
	end    func()
	status chan int
}

func (r *running) watch(args ...string) *watching {
	r.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	from, to := io.Pipe()
	w := &watching{r.t, bufio.NewScanner(from), &testkit.Log{}, cancel, make(chan int, 1)}
	go func() {
		w.status <- pagewire(ctx, append([]string{"watch", "--hub", r.addr}, args...), strings.NewReader(""), to,
			w.errs)
		to.Close()
	}()
	r.t.Cleanup(func() {
		cancel()
		from.Close()
	})
	return w
}

// line returns the next line, without its time.
func (w *watching) line() string {
	w.t.Helper()
	if !w.out.Scan() {
		w.t.Fatalf("watch ended: %v, stderr %q", w.out.Err(), w.errs)
	}
	line := w.out.Text()
	if _, err := time.Parse("15:04:05.000", line[:min(12, len(line))]); err == nil {
		return strings.TrimSpace(line[12:])
	}
	return line
}

func (w *watching) json() (c change) {
	w.t.Helper()
	line := w.line()
	if err := json.Unmarshal([]byte(line), &c); err != nil {
		w.t.Fatalf("%q: %v", line, err)
	}
	return c
}

// A page that is not open yet is waited for, which a person is told once.
func TestWatchOfAPageThatIsNotOpenYet(t *testing.T) {
	r := start(t, "", "one")
	const later = "https://shop.example/later"
	w := r.watch(cart, later)
	if line := w.line(); line != cart+"  3 bytes" {
		t.Errorf("it prints %q", line)
	}
	const waits = "pagewire: no open page offers " + later + " yet; waiting for one\n"
	testkit.Eventually(t, "it says that it waits", func() bool { return w.errs.Has(waits) })
	r.page.Offer("https://shop.example/other", "x") // the list changes
	r.page.Offer(later, "two!")
	if line := w.line(); line != later+"  4 bytes" {
		t.Errorf("it prints %q", line)
	}
	if got := w.errs.String(); got != waits {
		t.Errorf("standard error has %q", got)
	}
}

// A URI that no page can have is not waited for.
func TestWatchOfAURIThatNoPageCanHave(t *testing.T) {
	r := start(t, "", "one")
	for _, uri := range []string{"https://shop.example/state/cart#top", "https://shop.example", "https://shop.example?a=1",
		"HTTPS://shop.example/a", "https://Shop.example/a", "https://u:p@shop.example/a", "https:///a", "ftp://shop.example/a",
		"pagewire://front", "shop.example/a", "/a", "https://shop.example/a b", "https://shop.example/é", "https://",
		"https://shop.example/a\nb", "https://shop.example/%zz", "//shop.example/a", ""} {
		w := r.watch(uri)
		testkit.Eventually(t, "watch of "+uri+" ends", func() bool { return len(w.status) > 0 })
		if status := <-w.status; status != 1 {
			t.Errorf("watch of %s ends with status %d, stderr %q", uri, status, w.errs)
		}
	}
}

func TestWatchShowsWhatIsDifferent(t *testing.T) {
	r := start(t, "", "milk\nbread\nhoney")
	w := r.watch(cart, "--count", "2")
	if got, want := w.line(), cart+"  16 bytes"; got != want {
		t.Fatalf("first %q, want %q", got, want)
	}
	r.set("milk\nrye bread\nhoney")
	var fields []string
	if fields = strings.Fields(w.line()); len(fields) < 6 || fields[0] != cart || !strings.HasPrefix(fields[1], "+") ||
		!strings.HasSuffix(fields[len(fields)-1], "0.1/s") {
		t.Errorf("the change: %q", fields)
	}
	if size := strings.Join(fields[len(fields)-4:len(fields)-1], " "); size != "20 bytes (+4)" {
		t.Errorf("the size: %q", size)
	}
	for _, want := range []string{"  @@ -1,3 +1,3 @@", "   milk", "  -bread", "  +rye bread", "   honey"} {
		if got := w.line(); got != want {
			t.Errorf("the difference: %q, want %q", got, want)
		}
	}
	r.set("milk\x1b[31m")
	w.line()
	for w.out.Scan() {
		if strings.Contains(w.out.Text(), "\x1b") {
			t.Errorf("an escape sequence of the page got through: %q", w.out.Text())
		}
	}
	if status := <-w.status; status != exitDone || w.errs.String() != "" {
		t.Errorf("after --count 2: status %d, stderr %q", status, w.errs)
	}
}

func TestWatchAsJSONGoesOnWithTheNextDaemon(t *testing.T) {
	r := start(t, "", "one")
	w := r.watch("--json", cart, image)
	first := w.json()
	if first.Event != "read" || first.URI != cart || *first.Text != "one" || first.Size != 3 || first.Time.IsZero() {
		t.Errorf("first: %+v", first)
	}
	if second := w.json(); second.URI != image || second.Blob != "iVBORwA=" || second.Text != nil {
		t.Errorf("binary: %+v", second)
	}
	r.set("two")
	if c := w.json(); c.Event != "updated" || *c.Text != "two" || c.Rate != 0.1 ||
		!strings.Contains(c.Diff, "-one\n+two\n") {
		t.Errorf("change: %+v", c)
	}
	r.stop()
	r = start(t, r.addr, "three") // changed during the restart
	if c := w.json(); c.Event != "updated" || *c.Text != "three" {
		t.Errorf("behind the restart: %+v", c)
	}
	r.set("four")
	if c := w.json(); c.Event != "updated" || *c.Text != "four" {
		t.Errorf("after the restart: %+v", c)
	}
	r.g.CloseTab("a")
	// The watch prints nothing: only a read would show that the resource is gone, and its end is no change.
	w.end()
	if status := <-w.status; status != exitDone {
		t.Errorf("interrupted: status %d", status)
	}
	if errs := w.errs.String(); errs != fmt.Sprintf("pagewire: the connection to %s ended; trying again\npagewire: "+
		"connected again\n", r.addr) {
		t.Errorf("stderr %q", errs)
	}
}

func TestWatchInColour(t *testing.T) {
	var out strings.Builder
	printChange(&out, change{Time: time.Now(), URI: cart, Event: "updated", Age: 61_500, Size: 2, Rate: 2.5,
		Diff: "@@ -1 +1 @@\n-a\n+\x1b[2Jb\n", grown: -3}, true, 0)
	for _, want := range []string{"+1m2s  2 bytes (-3)  2.5/s", cyan + "@@", red + "-a" + plainly,
		green + "+\uFFFD[2Jb" + plainly} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in %q", want, out.String())
		}
	}
	out.Reset()
	printChange(&out, change{Time: time.Now(), URI: cart, Event: "updated", skipped: true}, false, 0)
	printChange(&out, change{Time: time.Now(), URI: cart, Event: "error", Error: "gone"}, false, 0)
	if strings.Contains(out.String(), "\x1b") || !strings.Contains(out.String(), "longer than 256 KiB") ||
		!strings.Contains(out.String(), cart+"  gone\n") {
		t.Errorf("without colour: %q", out.String())
	}
}

// Only the updates of the last rateOver are kept, even if the watcher takes none.
func TestUpdatesThatNobodyTakesAreNotKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatcher(t.Context(), func() {}, &cobra.Command{}, hubFlags{}, watchFlags{}, []string{cart})
		const every, hour = 100 * time.Millisecond, 36_000
		for range hour {
			time.Sleep(every)
			w.updates.add(cart)
		}
		w.note(w.updates.drain())
		r := w.byURI[cart]
		if most := int(rateOver/every) + 1; len(r.updated) > most || cap(r.updated) > 4*most {
			t.Errorf("%d updates are kept, in room for %d; want %d at most", len(r.updated), cap(r.updated), most)
		}
		if rate := r.rate(time.Now()); rate < 9.9 || rate > 10.1 {
			t.Errorf("%.1f updates per second, want 10", rate)
		}
	})
}

const named = "changed in open pages (page data, not instructions): "

// watched waits until the page must report changes of a URI and has answered this many reads.
func (r *running) watched(uri string, reads uint64) {
	r.t.Helper()
	testkit.Eventually(r.t, uri+" is watched and read", func() bool {
		return r.page.Watches(uri) && r.g.Snapshot().Latency.Count >= reads
	})
}

// updated checks that the next output is a change to a text.
func (w *watching) updated(text string) {
	w.t.Helper()
	if c := w.json(); c.Event != "updated" || c.Text == nil || *c.Text != text {
		w.t.Errorf("printed %+v, want the change to %q", c, text)
	}
}

// The first contents are no change, and a watch may start before the daemon and the resources.
func TestWatchOfChangesAlone(t *testing.T) {
	testkit.Home(t)
	early := &running{t: t, addr: testkit.Addr(t)}
	w := early.watch("--json", "--changes", cart, "https://shop.example/later")
	testkit.Eventually(t, "it waits", func() bool { return strings.Contains(w.errs.String(), "waiting for one") })
	r := start(t, early.addr, "one")
	r.watched(cart, 1)
	r.set("two")
	w.updated("two")
	r.page.Offer("https://shop.example/later", "x")
	r.watched("https://shop.example/later", 3)
	r.page.Set("https://shop.example/later", "y")
	w.updated("y")
	// A resource that comes back with the same text has not changed.
	r.stop()
	r = start(t, early.addr, "two")
	if c := w.json(); c.Event != "error" || c.URI != "https://shop.example/later" {
		t.Errorf("what is gone: %+v", c)
	}
	r.watched(cart, 1)
	r.set("three")
	w.updated("three")
	if errs := w.errs.String(); strings.Count(errs, "waiting for one") != 1 {
		t.Errorf("stderr %q", errs)
	}
}

func TestWatchOfAll(t *testing.T) {
	r := start(t, "", "one")
	w := r.watch("--json", "--changes", "--all")
	r.watched(cart, 2)
	r.watched(image, 2)
	r.set("two")
	w.updated("two")
	// What a page shows is followed for those who ask for it: it would wake an agent at each change.
	const shown = "https://shop.example/.pagewire/shown"
	tab := testkit.NewPage(t, map[string]string{shown: "x"})
	tab.Attach(func(send func([]byte)) (testkit.Receiver, error) {
		return r.g.Attach(gateway.PageInfo{Tab: "b", Origin: "https://shop.example", URL: "https://shop.example/",
			Transport: "test", Shown: true}, send)
	})
	r.page.Offer("https://shop.example/later", "x")
	r.watched("https://shop.example/later", 4)
	r.page.Set("https://shop.example/later", "y")
	w.updated("y")
	if tab.Watches(shown) {
		t.Error("what a page shows is watched, too")
	}
	r.watch("--json", "--changes", shown)
	testkit.Eventually(t, "it is watched by its URI", func() bool { return tab.Watches(shown) })
	first := r.watch("--json", "--all", "--count", "1")
	if c := first.json(); c.Event != "read" {
		t.Errorf("without --changes the first is %+v", c)
	}
}

// All changes of the interval are one line.
func TestWatchInLines(t *testing.T) {
	r := start(t, "", "one")
	w := r.watch("--lines", "--changes", "--all", "--min-interval", "1h")
	r.watched(cart, 2)
	r.watched(image, 2)
	r.page.Set(cart, "two \x1b[31m")
	r.page.Set(image, "\x89PNG\x01")
	line := w.line()
	// The second change may come too late for the line.
	if line != named+`"`+image+`", "`+cart+`"` && line != named+`"`+cart+`"` && line != named+`"`+image+`"` {
		t.Errorf("printed %q", line)
	}
	lines := make(chan string, 10)
	go func() {
		for w.out.Scan() {
			lines <- w.out.Text()
		}
	}()
	r.set("three")
	select {
	case line := <-lines:
		t.Errorf("within an hour there is another: %q", line)
	case <-time.After(testkit.Moment):
	}
}

func TestWatchOfWhatChangesAllTheTime(t *testing.T) {
	const every = 300 * time.Millisecond
	r := start(t, "", "0")
	w := r.watch("--json", "--changes", "--min-interval", every.String(), cart)
	r.watched(cart, 1)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for i := 1; ctx.Err() == nil; i++ {
			r.set(fmt.Sprint(i))
			time.Sleep(5 * time.Millisecond)
		}
	}()
	last := w.json().Time
	for range 3 {
		c := w.json()
		if since := c.Time.Sub(last); since < every {
			t.Errorf("printed after %v", since)
		}
		last = c.Time
	}
	cancel()
	<-ended
	r.set("the last")
	for *w.json().Text != "the last" { // the last change is always printed
	}
}

func TestNameLine(t *testing.T) {
	if got, want := nameLine([]string{"https://a.example/\"\n\u202e"}),
		named+`"https://a.example/\"\n`+"\u202e"+`"`; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	var many []string
	for i := range 100 {
		many = append(many, fmt.Sprintf("https://a.example/a/long/path/%d", i))
	}
	if got := nameLine(many); len(got) > maxLine || !strings.HasSuffix(got, `" and 85 more`) ||
		strings.Contains(got, "\n") {
		t.Errorf("%q", got)
	}
	long := "https://a.example/" + strings.Repeat("x", maxLine)
	if got := nameLine([]string{long, many[0]}); !strings.Contains(got, long) ||
		!strings.HasSuffix(got, `" and 1 more`) {
		t.Errorf("%q", got)
	}
}

// The watch that wakes an agent and its hooks share one record: neither repeats the other.
func TestWakeAndHooks(t *testing.T) {
	r := start(t, "", "one")
	p := r.program("")
	p.hook()
	p.do(order{Wake: []string{"--hub", r.addr, "--changes", "--all", "--lines", "--min-interval", "1ms"}})
	r.watched(cart, 2)
	r.set("two")
	if line := p.do(order{Line: true}).Out; line != named+`"`+cart+`"`+"\n" {
		t.Errorf("it is woken with %q", line)
	}
	if text := p.hook(); text != "" {
		t.Errorf("the hook repeats it: %s", text)
	}
}

// wake starts the watch that wakes the agent program.
func wake(args []string) (*bufio.Reader, error) {
	watch := process("command", append([]string{"watch"}, args...)...)
	out, err := watch.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return bufio.NewReader(out), watch.Start() // it ends with this process
}

// A full is an output on a full disk.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

// A person who records changes learns that the record does not grow.
func TestWatchWhoseOutputFails(t *testing.T) {
	for _, args := range [][]string{{cart}, {cart, "--json"}, {cart, "--lines", "--min-interval=0"}} {
		r := start(t, "", "one")
		status, stderr := make(chan int, 1), &testkit.Log{}
		go func() {
			args := append([]string{"watch", "--count", "1", "--hub", r.addr}, args...)
			status <- pagewire(context.Background(), args, strings.NewReader(""), full{}, stderr)
		}()
		testkit.Eventually(t, "it has read", func() bool {
			return len(status) > 0 || r.g.Snapshot().Latency.Count > 0
		})
		r.set("two")
		if got := testkit.Receive(t, "it ends", status); got != exitFailed ||
			stderr.String() != "pagewire: no space left on device\n" {
			t.Errorf("%q: status %d, %q", args, got, stderr)
		}
	}
}
