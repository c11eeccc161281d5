package agents

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/remote"

	"github.com/pagewire/pagewire/bridge/desktop/browser"
	"github.com/pagewire/pagewire/bridge/desktop/browser/launched"
	"github.com/pagewire/pagewire/bridge/pages/extension"
	"github.com/pagewire/pagewire/bridge/testkit"
	"github.com/pagewire/pagewire/bridge/testkit/browsertest"
	"github.com/pagewire/pagewire/bridge/testkit/testcmd"
	"github.com/pagewire/pagewire/demo/ci"
)

// A watched is a user with an agent program, and with the page of a CI run in a browser.
type watched struct {
	*testing.T
	home, site, hub string
}

// offers are the ways in which the user offers the page. Each returns flags for pagewire serve, and
// a function that returns the page's tab, for the test to look into it.
var offers = map[string]func(w watched) (flags []string, tab func() context.Context){
	"launch": func(w watched) ([]string, func() context.Context) {
		port := strings.TrimPrefix(testkit.Addr(w), "127.0.0.1:")
		return []string{"--launch", "--headless", "--debug-port", port, "--open", w.site + ci.Path},
			func() context.Context {
				return w.tabIn("http://127.0.0.1:" + port)
			}
	},
	"chrome": func(w watched) ([]string, func() context.Context) {
		b := testkit.Must(launched.Start(w.Context(),
			launched.Options{DebugPort: "0", Open: []string{w.site + ci.Path}}))(w)
		w.Cleanup(func() { b.Close() })
		return []string{"--chrome", b.URL, "--shown", w.site},
			func() context.Context { return w.tabIn(b.URL) }
	},
	"extension": watched.byExtension,
}

// tabIn returns the tab with the page, in the browser at a DevTools address.
func (w watched) tabIn(url string) context.Context {
	allocator, detach := remote.NewAllocator(context.Background(), url)
	w.Cleanup(detach)
	first, end := chromedp.NewContext(allocator)
	w.Cleanup(end)
	for _, info := range testkit.Must(chromedp.Targets(first))(w) {
		if info.Type == "page" && strings.HasPrefix(info.URL, w.site) {
			tab, leave := chromedp.NewContext(first, chromedp.WithTargetID(info.TargetID),
				chromedp.WithDetachOnCancel())
			w.Cleanup(leave)
			testkit.OK(w, chromedp.Do(tab))
			w.do(tab, chromedp.WaitReady("#again"))
			return tab
		}
	}
	w.Fatal("the browser has no such tab")
	return nil
}

// byExtension installs the extension, and offers the page by its popup. Pages of other sites cannot
// see it.
func (w watched) byExtension() ([]string, func() context.Context) {
	profile := filepath.Join(w.home, "profile")
	install := testcmd.Command(dir(w.T, "../../bin/pagewire"), "extension", "install",
		"--user-data-dir", profile)
	env := []string{"HOME=" + w.home, "XDG_CONFIG_HOME=" + w.home + "/.config", "PAGEWIRE_HUB=" +
		w.hub}
	install.Env = append(os.Environ(), env...)
	testkit.Must(install.Output())(w)
	folder := dir(w.T, "../../dist/extension")
	first, end,
		err := browsertest.Launch(context.Background(),
		browsertest.Options{Env: env, Flags: []string{
			"--user-data-dir=" + profile, "--load-extension=" + folder,
			"--disable-extensions-except=" + folder}})
	testkit.OK(w, err)
	w.Cleanup(end)
	testkit.Eventually(w, "the extension's worker runs", func() bool {
		for _, info := range testkit.Must(chromedp.Targets(first))(w) {
			if info.Type == "service_worker" &&
				strings.HasPrefix(info.URL, extension.ExtensionOrigin) {
				return true
			}
		}
		return false
	})
	own := w.open(first, extension.ExtensionOrigin+"/options.html")
	w.click(own, "#only")
	testkit.Eventually(w, "other sites cannot see the extension", func() bool {
		return look[int](w, own,
			`chrome.scripting.getRegisteredContentScripts().then((all) => all.length)`) == 0
	})
	page := w.open(first, w.site+ci.Path)
	tab := look[string](w, own,
		`chrome.tabs.query({}).then((all) => String(all.find(({ title }) => title?.startsWith("Run")).id))`)
	w.do(own, chromedp.Navigate(extension.ExtensionOrigin+"/popup.html?tab="+tab))
	site := "[aria-label='Everything that " + w.site + " shows'] "
	for _, button := range []string{"preview", "once"} {
		w.click(own, site+"[data-do="+button+"]")
	}
	w.do(own, chromedp.WaitVisible(site+"[data-do=revoke]"))
	return nil, func() context.Context { return page }
}

func (w watched) open(first context.Context, url string) context.Context {
	tab, end := chromedp.NewContext(first)
	w.Cleanup(end)
	testkit.OK(w, chromedp.Do(tab))
	w.do(tab, chromedp.Navigate(url))
	return tab
}

func (w watched) click(tab context.Context, selector string) {
	w.Helper()
	w.do(tab, chromedp.WaitVisible(selector), chromedp.Click(selector))
}

// do acts in a tab within the test's patience.
func (w watched) do(tab context.Context, actions ...chromedp.Action[chromedp.Void]) {
	w.Helper()
	limited, end := context.WithTimeout(tab, testkit.Patience)
	defer end()
	if err := chromedp.Do(limited, actions...); err != nil {
		w.Fatalf("%v: %s", err, look[string](w, tab, "document.body.innerText"))
	}
}

func look[T any](w watched, tab context.Context, script string) T {
	w.Helper()
	return testkit.Must(chromedp.Run(tab,
		chromedp.Evaluate[T](script, chromedp.EvalAwaitPromise)))(w)
}

// waits reports whether the daemon has a call of wait_for_page_update that waits, after two other
// calls of tools.
func (w watched) waits() bool {
	token, _ := os.ReadFile(filepath.Join(w.home, ".config/pagewire/token"))
	text := testkit.Metrics(w.hub, string(token))
	return strings.Contains(text, "pagewire_tool_calls_total 3\n") &&
		strings.Contains(text, "pagewire_calls_waiting 1\n")
}

// world is what a script of the page can see: a line for each name, and those of its document.
const world = `[globalThis, Document.prototype, Navigator.prototype].flatMap((owner) => Reflect.ownKeys(owner).map(String))
	.concat(document.documentElement.outerHTML.split("\n")).join("\n")`

// A person says: watch the CI run in my browser, and when the browser job fails, look into it. The
// agent program lists, reads and waits. Its model is asked for these three calls, and next when the
// job has failed: it then has the one line that has changed. The page, which allows only its own
// script, sees what it sees in a browser without Pagewire.
func TestWatchesARun(t *testing.T) {
	for _, name := range []string{"gemini-cli", "codex"} {
		if !runs(name) {
			continue
		}
		for way, offer := range offers {
			t.Run(name+"/"+way, func(t *testing.T) { watchRun(t, name, offer) })
		}
	}
}

func watchRun(t *testing.T, name string, offer func(w watched) ([]string, func() context.Context)) {
	t.Parallel()
	run := ci.New(0)
	server := httptest.NewServer(run)
	t.Cleanup(server.Close)
	w := watched{t, testkit.ShortDir(t), server.URL, testkit.Addr(t)}
	gateway := []string{dir(t, "../../bin/pagewire"), "serve", "--hub", w.hub}
	flags, tab := offer(w)
	gateway = append(gateway, flags...)
	uri, seen := server.URL+"/.pagewire/shown", ""
	m := newModel(t,
		step{tool: "list_page_resources", before: func() {
			for listed := ""; t.Context().Err() == nil && !strings.Contains(listed, uri); {
				ls := testcmd.Command(gateway[0], "ls", "--hub", w.hub)
				ls.Env = []string{"HOME=" + w.home, "PATH=" + os.Getenv("PATH")}
				out, _ := ls.Output() // fails until the daemon runs
				listed = string(out)
			}
		}},
		step{tool: "read_page_resource", args: object{"uri": uri}},
		step{tool: "wait_for_page_update", with: func(body string) object {
			all := regexp.MustCompile(`"revision":(\d+)`).FindAllStringSubmatch(unescaped(body), -1)
			if len(all) == 0 {
				t.Errorf("the model is given no revision: %s", body)
				return object{"uris": []string{uri}}
			}
			go func() {
				for t.Context().Err() == nil && !w.waits() {
					time.Sleep(10 * time.Millisecond)
				}
				run.Set(ci.Fails)
			}()
			return object{"uris": []string{uri}, "since": json.Number(all[len(all)-1][1])}
		}},
		step{say: "The job browser has failed: I look into it.",
			before: func() { seen = look[string](w, tab(), world) }},
	)
	p := programNamed(t, name, m.URL, gateway)
	p.install(t, w.home)
	config(t, w.home, append([]string{p.client, "--write", "--"}, gateway[2:]...)...)
	for i, argument := range p.command {
		if argument == prompt {
			p.command[i] = "Watch the CI run in my browser, and when the browser job fails, look into it."
		}
	}
	if name == "codex" {
		// else it asks its model before it has the tools of a server that takes seconds, as --launch does
		p.command = append(p.command, "-c", "mcp_servers.pagewire.required=true")
	}
	// The display of the program's user reaches the browser of --launch.
	program, display := filepath.Join(w.home, "a-browser"), filepath.Join(w.home, "display")
	testkit.OK(t,
		writeFile(program, "#!/bin/sh\necho \"$DISPLAY\" > "+display+"\nexec "+
			testkit.Must(browser.Find())(t)+
			" \"$@\"\n"))
	p.env = append(p.env, "PAGEWIRE_BROWSER="+program, "DISPLAY=:77")
	said, err := p.run(t, w.home, p.command[1:]...)
	if err != nil || !strings.Contains(string(said), "I look into it.") {
		t.Errorf("it ends with %v, and says %.3000s", err, said)
	}
	if is, _ := os.ReadFile(display); slices.Contains(flags, "--launch") && string(is) != ":77\n" {
		t.Errorf("the launched browser has the display %q", is)
	}
	if len(m.bodies) != 4 {
		t.Errorf(
			"the model is asked %d times, want 4: to list, to read, to wait, and when the job has failed", len(m.bodies))
	}
	last := unescaped(m.last())
	for text, what := range map[string]string{
		"\n# Deltas for long texts #4821\n":                                       "the page",
		"@@\n-| browser | In progress | large |\n+| browser | Failed | large |\n": "the one line that has changed",
		"@@ -": "one difference",
	} {
		if n := strings.Count(last, text); n != 1 {
			t.Errorf("the model is given %s %d times: %s", what, n, last)
		}
	}

	plain := testkit.Must(launched.Start(t.Context(),
		launched.Options{DebugPort: "0", Open: []string{server.URL + ci.Path}}))(t)
	t.Cleanup(plain.Close)
	common := strings.Split(look[string](w, w.tabIn(plain.URL), world), "\n")
	if more := slices.DeleteFunc(strings.Split(seen, "\n"), func(line string) bool {
		return slices.Contains(common, line)
	}); len(more) > 0 || seen == "" {
		t.Errorf("the page sees what it does not see in a browser without Pagewire: %q", more)
	}
}
