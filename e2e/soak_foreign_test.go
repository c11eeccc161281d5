//go:build soak

package e2e

// Pages that know nothing of Pagewire, which a person shows to agents as a whole or in part, and a
// program of others that uses a page's tools.

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/pagewire/pagewire/bridge/testkit"
)

// Each of these pages has an origin of its own. Everything that the first show is allowed in the
// extension, and the others are named by the flag of an agent. They tick more slowly: 15 changes a
// second in all.
const (
	foreignTabs, namedTabs = 6, 24
	foreignPause           = 2 * time.Second
)

const foreignPage = `
	addEventListener("DOMContentLoaded", async () => {
		const tab = new URL(location).searchParams.get("tab"), born = Date.now(), mark = document.createElement("p");
		const says = (n) => { mark.textContent = location.origin + "/ is " + (born + n) + " at " + Date.now(); };
		document.title = "Foreign " + location.host;
		mark.id = "mark";
		document.body.append(mark);
		for (let n = 0; ; ) {
			if (n === 0) says(n++);
			const state = {};
			for (const name of ["shown", "parts/mark"]) state[location.origin + "/.pagewire/" + name] = mark.textContent;
			const answer = await fetch("/tick?tab=" + tab, { method: "POST", body: JSON.stringify(state) }).catch(() => 0);
			if (!answer.ok) return;
			if ((await answer.text()) === "go") says(n++);
		}
	});`

func isForeign(kind string) bool { return kind == "foreign" || kind == "named" }

func (b *soakTab) isForeign() bool { return isForeign(b.kind) }

// foreignOrigin is the origin of one of these pages, or a pattern of all.
func (s *soak) foreignOrigin(kind string, n any) string {
	at := testkit.Must(url.Parse(s.kinds[kind].URL))(s.t)
	return fmt.Sprintf("http://%v.localhost:%s", n, at.Port())
}

func (b *soakTab) title() string { return "Foreign " + strings.TrimPrefix(b.origin, "http://") }

// showTab shows agents everything of a tab's site, as a person does.
func (s *soak) showTab(b *soakTab) { _ = chromedp.Cancel(s.x.grant(b.title(), b.origin).ctx) }

// aTab is some tab of a kind.
func (s *soak) aTab(kind string) *soakTab {
	for {
		if b := s.tabs[s.pick(len(s.tabs))]; b.kind == kind {
			return b
		}
	}
}

// pickPart shares the part of a page at which a person points, or forgets it.
func (s *soak) pickPart() {
	b := s.aTab("foreign")
	section := "[aria-label='Parts of " + b.origin + "'] "
	part := section + "[data-part=mark]"
	popup := s.x.popupOf(b.title())
	defer func() { _ = chromedp.Cancel(popup.ctx) }()
	popup.shows(section + "[data-do=pick]")
	if run[bool](popup, fmt.Sprintf("return !!document.querySelector(%q)", part)) {
		s.did("part forgotten")
		s.forget(b)
		popup.do(chromedp.Click(part + " [data-do=forget]"))
		b.part = false
		s.gone(b.origin + "/.pagewire/parts/mark")
		return
	}
	s.did("part picked")
	p := &tab{t: s.t, ctx: b.ctx, is: chromiumTab{b.ctx}}
	popup.pointsInPage(section, p, "#mark")
	p.do(chromedp.Click("#mark"))
	popup.shows(section + ".preview")
	popup.types("#part", "mark")
	popup.do(chromedp.Click(section + "[data-do=share]"))
	popup.shows(part)
	b.part = true
}

// gone waits until no agent lists a resource. None may read it then.
func (s *soak) gone(uri string) {
	for _, a := range s.all() {
		testkit.Eventually(s.t, "what is not shared any more is gone", func() bool { return !a.Offers(uri) })
		if text, err := a.Read(uri); err == nil {
			s.finds(&s.leaks, "what is not shared any more is read: %q", text)
		}
	}
}

// A soakPeer is chrome-devtools-mcp, at a tab of a browser of its own. It uses the page's tools.
type soakPeer struct {
	s       *soak
	address string
	url     string
	agent   *peerAgent
	count   int64
}

func (s *soak) openPeer() *soakPeer {
	ctx, address := startChromium(s.t, native.flags...)
	site := s.kinds["own 0"]
	p := &soakPeer{s: s, address: "http://" + strings.Split(address, "/")[2], url: site.URL + "/?tab=peer"}
	ctx, _ = chromedp.NewContext(ctx)
	testkit.OK(s.t, load(ctx, p.url))
	p.connect()
	return p
}

func (p *soakPeer) connect() {
	p.agent = connectPeer(p.s.t, peers[0], p.address)
	peers[0].choose(p.agent, p.url)
}

// step reads a resource by the page's tool, which must give the present state.
func (p *soakPeer) step() {
	if p.s.pick(5) == 0 {
		p.s.did("host of others ended, and one began")
		p.agent.session.Close()
		p.connect()
	}
	uri := p.s.kinds["own 0"].URL + "/r/peer/" + strconv.Itoa(p.s.pick(resourcesOfATab))
	p.s.mu.Lock()
	truth := soakText.FindStringSubmatch(p.s.truth[uri])
	p.s.mu.Unlock()
	var read struct{ Contents []struct{ URI, Text string } }
	said := peers[0].call(p.agent, "resources_read", map[string]any{"uri": uri})
	if err := json.Unmarshal([]byte(said), &read); err != nil || len(read.Contents) != 1 {
		p.s.finds(&p.s.wrong, "a host of others is answered %q, %v", said, err)
		return
	}
	if m := soakText.FindStringSubmatch(read.Contents[0].Text); m == nil || m[1] != uri || truth == nil || m[2] < truth[2] {
		p.s.finds(&p.s.wrong, "a host of others reads %q, after %q", said, truth)
	}
	p.s.did("host of others read")
}
