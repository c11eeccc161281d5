package serve

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pagewire/pagewire/bridge/access"
	"github.com/pagewire/pagewire/bridge/agents"
	"github.com/pagewire/pagewire/bridge/desktop/daemon"
	"github.com/pagewire/pagewire/bridge/desktop/hook"
	"github.com/pagewire/pagewire/bridge/gateway"
	"github.com/pagewire/pagewire/bridge/internal/parts"
	"github.com/pagewire/pagewire/bridge/node/uplink"
	"github.com/pagewire/pagewire/bridge/pages/cdp"
	"github.com/pagewire/pagewire/bridge/pages/extension"
)

// A process is a gateway with its pages, ports and browsers: the daemon's, or the one that serves
// an agent alone.
type process struct {
	o        Options
	g        *gateway.Gateway
	handlers *handlers
	port     *pagePort
	attached *attached
	launcher *launcher
	hooks    hook.Agents
	pages    func()        // begins to serve pages
	begun    chan struct{} // closed by pages

	ctx  context.Context // of everything that this process runs
	stop context.CancelFunc
	all  sync.WaitGroup

	mu        sync.Mutex // guards debugging
	debugging int        // the number of agents with Flags.Debug
}

// secrets are the user's token and its file. The extension's secret is in a file next to it.
type secrets struct {
	file, token string
	missing     error // the reason why there is no token
}

func secretsOf(o *Options) (s secrets) {
	if s.file = o.TokenFile; s.file == "" {
		s.file, s.missing = access.TokenFile()
	}
	if s.missing == nil {
		s.token, s.missing = access.Token(s.file)
	}
	return s
}

// extension returns the extension's secret. It fails if the path of the token is unknown.
func (s secrets) extension() (string, error) {
	if s.file == "" {
		return "", s.missing
	}
	return extension.Secret(s.file)
}

// newProcess returns a process that serves no pages yet.
func newProcess(o Options, known secrets) *process {
	options := gateway.Options{Version: o.Version, AllowPages: o.Flags.AllowOrigins,
		Shown: o.Flags.Shown, Opened: o.Flags.Opened, Parts: o.Flags.Parts,
		PartsFile: o.Flags.PartsFile, AnyScheme: o.AnyScheme, Log: o.Log}
	ctx, stop := context.WithCancel(context.Background())
	if o.Node != nil {
		options.Share = uplink.New(ctx, *o.Node).Share
	}
	g := gateway.New(options)
	if known.missing != nil {
		g.Notice("token", "Pages are served, agents on HTTP and the inspector are not: "+
			known.missing.Error()+".")
		o.Log.Error(
			"there is no token: what needs it, agents on HTTP and the inspector, is not served",
			"error", known.missing)
	}
	p := &process{o: o, g: g, attached: &attached{g: g, hub: o.Hub, log: o.Log, picks: &cdp.Picks{},
		at: map[string]*attachment{}},
		begun: make(chan struct{}), ctx: ctx, stop: stop}
	p.launcher = &launcher{g: g, log: o.Log, attached: p.attached, takesPages: p.takesPages}
	p.handlers = newHandlers(g, o, known.token, known.extension)
	p.port = &pagePort{addr: o.Hub, handler: p.handlers.handler(false), notice: g.Notice,
		log: o.Log}
	p.pages = sync.OnceFunc(func() { close(p.begun) })
	p.all.Go(func() {
		if p.takesPages() {
			p.port.serve(p.ctx)
		}
	})
	return p
}

// endTimeout bounds end.
const endTimeout = 1500 * time.Millisecond

// close ends agents first, then pages, then browsers and the port, for at most endTimeout.
func (p *process) close() {
	limited, cancel := context.WithTimeout(context.Background(), endTimeout)
	defer cancel()
	p.handlers.agents.Close(limited)
	p.g.Close()
	p.handlers.pages.Close()
	p.stop()
	done := make(chan struct{})
	go func() {
		p.attached.close()
		p.launcher.close()
		p.all.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-limited.Done():
	}
}

// options returns the options for this process's daemon.
func (p *process) options(started func()) daemon.Options {
	return daemon.Options{
		Hub: p.o.Hub, Version: p.o.Version, Serve: p.serve, Local: p.local(),
		Lacks: lacks, Keeps: p.launcher.isWanted, Busy: p.busy, Started: started, Log: p.o.Log,
	}
}

// takesPages waits until the process serves pages. It reports false if the process ends first.
func (p *process) takesPages() bool {
	select {
	case <-p.begun:
		return p.ctx.Err() == nil
	case <-p.ctx.Done():
		return false
	}
}

// busy reports whether an agent on HTTP, an inspector or a launched browser needs the process. A
// browser that nobody wants counts until it has ended.
func (p *process) busy() bool {
	return p.handlers.inspector.Busy() || p.handlers.agents.Busy() || p.launcher.isThere()
}

// local returns the handler for processes of this user: native hosts, hooks, and requests about the
// daemon.
func (p *process) local() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/page", func(w http.ResponseWriter, r *http.Request) {
		if p.takesPages() {
			p.handlers.pages.Host().ServeHTTP(w, r)
		}
	})
	mux.Handle(access.TicketPath, p.handlers.local.Tickets())
	mux.Handle(hook.Path, p.hooks.Handler(p.g))
	mux.HandleFunc("GET "+statusPath, func(w http.ResponseWriter, r *http.Request) {
		s := p.g.Snapshot()
		pages := slices.DeleteFunc(s.Pages, func(p gateway.PageState) bool { return p.Shown })
		is := Status{
			Version: p.o.Version, Addr: p.port.listensAt(), Log: p.o.LogFile, Pages: len(pages),
			Agents:  len(s.Agents),
			Who:     s.Agents[:min(len(s.Agents), maxTabs)],
			Notices: p.g.Notices(),
		}
		if r.URL.RawQuery == withTabs {
			limited, cancel := context.WithTimeout(r.Context(), time.Second) // a browser may hang
			defer cancel()
			is.Tabs = tabsOf(p.g.BareTabs(limited))
		}
		answer(w, is, nil)
	})
	mux.HandleFunc("POST "+pickPath, func(w http.ResponseWriter, r *http.Request) {
		picked, err := p.attached.picks.Pick(r.Context())
		answer(w, picked, err)
	})
	mux.HandleFunc("POST "+partsPath, func(w http.ResponseWriter, r *http.Request) {
		file := r.URL.Query().Get("file")
		rules, err := parts.Read(file)
		answer(w, err == nil && p.g.SetParts(file, rules), err)
	})
	return mux
}

// answer writes a JSON value, or the reason why there is none, for askDaemon.
func answer(w http.ResponseWriter, value any, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusConflict)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(value) // the client may have gone
}

// serve serves an agent, or a command, until its input ends.
func (p *process) serve(ctx context.Context, h daemon.Hello, in io.Reader, out io.Writer,
	work func(daemon.Session)) (err error) {
	o := p.o.scope(h.Flags)
	o.Transport, o.Handover, o.About = gateway.TransportStdio, h.Handover, subjectOf(h)
	if h.As == daemon.AsCommand {
		o = gateway.AgentOptions{Transport: gateway.TransportCommand}
	}
	if h.Flags.Debug && p.o.LogLevel != nil {
		defer p.debug()()
	}
	if h.Launch != nil {
		release, err := p.launcher.want(*h.Launch)
		if err != nil {
			return err
		}
		defer func() { release(err != nil) }()
	}
	if h.Flags.Chrome != "" {
		release, err := p.attached.want(h.Flags.Chrome, h.Flags.Inject)
		if err != nil {
			return err
		}
		defer release()
	}
	defer p.nameProfile(h.Flags)()
	agent, err := p.g.ConnectWith(o)
	if err != nil {
		return err
	}
	if len(h.Handover) == 0 {
		time.AfterFunc(comeBack, p.pages)
	} else {
		p.pages() // at once: the former daemon's agent has brought the tabs' numbers
	}
	if h.As == daemon.AsAgent {
		defer p.hooks.Add(h.PID, agent)()
	}
	work(agent)
	return agents.Lines(ctx, agent, p.g.MessageBytes(), in, out)
}

// nameProfile gives Flags.Name to the profile of the agent's browser, until release is called.
func (p *process) nameProfile(f daemon.Flags) (release func()) {
	if f.Name == "" {
		return func() {}
	}
	return p.g.NameProfile(cmp.Or(f.Chrome, launchedBrowser), f.Name)
}

// debug makes the log verbose until done is called. One agent is enough: a longer log harms no
// other agent.
func (p *process) debug() (done func()) {
	add := func(n int) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.debugging += n; p.debugging > 0 {
			p.o.LogLevel.Set(slog.LevelDebug)
		} else {
			p.o.LogLevel.Set(slog.LevelInfo)
		}
	}
	add(1)
	return func() { add(-1) }
}

const statusPath, withTabs = "/status", "tabs"

// A Status is a daemon's description of itself.
type Status struct {
	Version string `json:"version"`
	// Addr is the address at which pages find the daemon, or "" while it does not have the port.
	Addr string `json:"addr"`
	// Log is the daemon's log file, or "" if it logs to a person's terminal.
	Log string `json:"log,omitempty"`
	// Pages counts the pages that offer something themselves.
	Pages  int `json:"pages"`
	Agents int `json:"agents"`
	// Who are the first of these agents.
	Who []gateway.AgentState `json:"who"`
	// Notices are sentences about faults, as agents get them.
	Notices []string `json:"notices,omitempty"`
	// Tabs are open tabs that offer nothing, for AskTabs alone. No agent gets their titles and
	// addresses.
	Tabs []Tab `json:"tabs,omitempty"`
}

// A Tab is an open tab.
type Tab struct {
	Title string `json:"title"`
	URL   string `json:"url"`
}

// tabsOf are the first tabs, with their texts cut.
func tabsOf(infos []gateway.PageInfo) (tabs []Tab) {
	for _, info := range infos[:min(len(infos), maxTabs)] {
		tabs = append(tabs,
			Tab{gateway.Shorten(info.Title, maxTabText), gateway.Shorten(info.URL, maxTabText)})
	}
	return tabs
}

// maxTabs and maxTabText bound Status.Tabs and Status.Who, and maxStatus what Ask reads of it.
const maxTabs, maxTabText, maxStatus = 200, 300, 1 << 20

// Ask asks the running daemon for its status. It fails with daemon.ErrNone, with ctx's error, or
// with a sentence.
func Ask(ctx context.Context, hub, version string) (s Status, err error) {
	return statusOf(ctx, hub, version, statusPath)
}

// AskTabs is Ask with Status.Tabs, which extensions are asked for.
func AskTabs(ctx context.Context, hub, version string) (s Status, err error) {
	return statusOf(ctx, hub, version, statusPath+"?"+withTabs)
}

func statusOf(ctx context.Context, hub, version, path string) (s Status, err error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	err = askDaemon(ctx, hub, version, http.MethodGet, path, maxStatus, &s)
	return s, err
}

// askTimeout bounds Ask and AskTabs.
const askTimeout = 2 * time.Second

const pickPath, partsPath = "/pick", "/parts"

// Pick waits until a person has clicked on a part of a page in one of the daemon's browsers. It
// fails with daemon.ErrNone, with ctx's error, or with a sentence.
func Pick(ctx context.Context, hub, version string) (picked cdp.Picked, err error) {
	err = askDaemon(ctx, hub, version, http.MethodPost, pickPath, maxPicked, &picked)
	return picked, err
}

// RereadParts has the agents that run with a file of parts get what is in it now, and reports
// whether there are any. It fails as Pick does.
func RereadParts(ctx context.Context, hub, version, file string) (used bool, err error) {
	path := partsPath + "?" + url.Values{"file": {file}}.Encode()
	err = askDaemon(ctx, hub, version, http.MethodPost, path, maxPicked, &used)
	return used, err
}

// askDaemon asks the daemon for a JSON value of at most so many bytes.
func askDaemon(ctx context.Context, hub, version, method, path string, most int64, into any) error {
	r, err := http.NewRequestWithContext(ctx, method, "http://daemon"+path, nil)
	if err != nil {
		return err
	}
	answer, err := Client(hub, version).Do(r)
	if err != nil {
		if errors.Is(err, daemon.ErrNone) {
			return daemon.ErrNone
		}
		return fmt.Errorf("the daemon does not answer: %w", err)
	}
	defer answer.Body.Close()
	body := io.LimitReader(answer.Body, most)
	if answer.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(body)
		return errors.New(strings.TrimSpace(string(text)))
	}
	return json.NewDecoder(body).Decode(into)
}

// maxPicked bounds the answer to Pick: the text that a reader gives, in JSON.
const maxPicked = 4 << 20

// Client returns a client for the daemon's socket. The host in its URLs has no meaning.
func Client(hub, version string) *http.Client {
	return &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true, // the next request may be to another daemon
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return Connect(ctx, hub, version)
		},
	}}
}

// Connect connects to the HTTP server on the daemon's socket. It fails as daemon.Dialer.Dial does.
func Connect(ctx context.Context, hub, version string) (net.Conn, error) {
	c, err := daemon.Dialer{Hub: hub}.Dial(ctx, daemon.Hello{Version: version, As: daemon.AsHTTP})
	if err != nil {
		return nil, err // no nil *Conn in a net.Conn
	}
	return c, nil
}
