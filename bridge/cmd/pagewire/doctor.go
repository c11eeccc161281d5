package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/pagewire/pagewire/bridge/access"
	"github.com/pagewire/pagewire/bridge/assets"
	"github.com/pagewire/pagewire/bridge/cmd/internal/cli"
	"github.com/pagewire/pagewire/bridge/cmd/pagewire/clientconfig"
	"github.com/pagewire/pagewire/bridge/cmd/pagewire/nativehost"
	"github.com/pagewire/pagewire/bridge/desktop/browser"
	"github.com/pagewire/pagewire/bridge/desktop/daemon"
	"github.com/pagewire/pagewire/bridge/desktop/serve"
)

// A finding is a line of the output.
type finding struct {
	Check  string `json:"check"`
	Status string `json:"status"` // ok, warn, fail
	Says   string `json:"says"`
	Do     string `json:"do,omitempty"`
}

func ok(says string) finding       { return finding{Status: "ok", Says: says} }
func warn(says, do string) finding { return finding{Status: "warn", Says: says, Do: do} }
func fail(says, do string) finding { return finding{Status: "fail", Says: says, Do: do} }

// A checkup holds the flags.
type checkup struct {
	hubFlags
	tokenFile, chrome string
}

// checks begin with the result of all. The others are in the order in which a page's state travels.
// Each takes a few seconds at most.
var checks = []struct {
	name string
	run  func(context.Context, checkup) finding
}{
	{"connection", checkConnection},
	{"browser", checkBrowser},
	{"debugging", checkDebugging},
	{"page files", checkAssets},
	{"token", checkToken},
	{"daemon", checkDaemon},
	{"extension", checkExtension},
	{"configuration", checkConfig},
}

func doctorCommand() *cobra.Command {
	var c checkup
	var to results
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check the connection between pages and agents",
		Long: "Says whether an agent sees pages, and what to do next. Then it checks what\n" +
			"pagewire serve needs, and how agent programs learn of changes. A line is ok,\n" +
			"warn (there is another way) or fail. The exit code is 1 if a line is fail.",
		Example: "  pagewire doctor",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, args []string) error {
			var all []finding
			failed := 0
			err := cli.Interruptible(cmd.Context(), func() error {
				for _, check := range checks {
					f := check.run(cmd.Context(), c)
					f.Check = check.name
					if f.Status == "fail" {
						failed++
					}
					all = append(all, f)
				}
				for _, p := range programs() {
					all = append(all, p.finding())
				}
				for i := range all {
					all[i].Says = plain(all[i].Says)
				}
				// What is to be done next is first: a failure, or what is missing of the connection.
				slices.SortStableFunc(all, func(a, b finding) int {
					return strings.Compare(min(a.Status, "ok"), min(b.Status, "ok"))
				})
				return cmd.Context().Err()
			})
			if err != nil {
				return err
			}
			if to.json {
				err = printJSON(cmd, all)
			} else {
				err = printFindings(cmd.OutOrStdout(), all)
			}
			if err != nil {
				return err
			}
			if failed > 0 {
				return fmt.Errorf("%d of %d checks failed", failed, len(all))
			}
			return nil
		},
	}
	to.add(cmd, "a JSON array")
	cmd.Flags().StringVar(&c.chrome, "chrome", "auto",
		"DevTools `URL` of the running browser, or auto")
	c.add(cmd)
	cmd.Flags().StringVar(&c.tokenFile, "token-file", "",
		"`file` of the token that agents on HTTP need (default in "+
			"the user's configuration directory)")
	return cmd
}

func printFindings(to io.Writer, all []finding) error {
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	for _, f := range all {
		fmt.Fprintf(table, "%s\t%s\t%s\n", f.Status, f.Check, cli.Plain(f.Says))
		if f.Do != "" {
			fmt.Fprintf(table, "\t\t→ %s\n", cli.Plain(f.Do))
		}
	}
	return table.Flush()
}

func checkBrowser(ctx context.Context, _ checkup) finding {
	path, err := browser.Find()
	switch {
	case errors.Is(err, browser.ErrNone):
		return warn("no Chromium, Chrome, Edge or Brave was found: --launch does not work",
			"install one (Debian: apt-get install chromium), or set PAGEWIRE_BROWSER to its path")
	case err != nil:
		return fail(err.Error(), "set PAGEWIRE_BROWSER to the path of a browser, or unset it")
	case runtime.GOOS == "windows":
		return ok(path) // there --version opens a window and prints nothing
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "--version")
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	version := strings.TrimSpace(string(out))
	if err != nil || version == "" {
		return fail(fmt.Sprintf("%s does not tell its version: %v", path, err),
			"try to start it by hand; PAGEWIRE_BROWSER names another")
	}
	return ok(version + ", " + path)
}

func checkDebugging(ctx context.Context, c checkup) finding {
	url := c.chrome
	if url == "auto" {
		found, err := browser.Running()
		if err != nil {
			return warn("no running browser takes connections: --chrome auto does not work",
				"allow it at chrome://inspect/#remote-debugging (Chrome 144 and later), or use --launch")
		}
		url = found
	}
	if strings.HasPrefix(url, "ws") {
		return ok(url + " (the browser asks you when serve connects)")
	}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	var version struct{ Browser string }
	if err := getJSON(ctx, strings.TrimSuffix(url, "/")+"/json/version", &version); err != nil ||
		version.Browser == "" {
		return fail(fmt.Sprintf("%s is no browser's DevTools: %v", url, err),
			"start the browser with --remote-debugging-port=9222 --user-data-dir=DIR, a DIR of its own")
	}
	return ok(version.Browser + " at " + url)
}

func checkAssets(context.Context, checkup) finding {
	if _, err := assets.FS(); err != nil {
		return warn("this binary was built without its page files: no --inject, no inspector page",
			"build it with make build (go build -tags pagewire_assets)")
	}
	return ok("inside this binary")
}

func checkToken(_ context.Context, c checkup) finding {
	path := c.tokenFile
	if path == "" {
		var err error
		if path, err = access.TokenFile(); err != nil {
			return fail(err.Error(), "set "+access.TokenFileEnv+" to the path of a file of yours")
		}
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return ok(path + " is made by the first serve")
	}
	if _, err := access.Token(path); err != nil {
		return fail(err.Error(), "only you may read it: chmod 600 "+path+
			"; or remove it, and a new one is made")
	}
	return ok(path)
}

func checkDaemon(ctx context.Context, c checkup) finding {
	s, err := serve.Ask(ctx, c.addr, versionName())
	switch {
	case errors.Is(err, daemon.ErrNone) && listening(ctx, c.addr):
		return warn("no pagewire serve runs, and another program has "+c.addr+
			", where pages look for one", anotherPort)
	case errors.Is(err, daemon.ErrNone):
		return ok("no pagewire serve runs, and " + c.addr + " is free")
	case errors.Is(err, daemon.ErrSilent), errors.Is(err, context.DeadlineExceeded):
		return fail(daemon.ErrSilent.Error(),
			"it is stopped, or hangs: another pagewire serve takes its place; if there is "+
				"none, end it")
	case err != nil:
		return fail(err.Error(),
			"until this is fixed, each pagewire serve works alone and does not see the pages "+
				"of the others")
	}
	says := fmt.Sprintf("%s runs, pages: %d, agents: %d", s.Version, s.Pages, s.Agents)
	if s.Log != "" {
		says += ", log: " + s.Log
	}
	faults := strings.Join(s.Notices, " ")
	switch {
	case s.Version != versionName():
		return warn(says+", and this is "+versionName(),
			"restart the agents, so that all of them run one version")
	case s.Addr == "" && !listening(ctx, c.addr):
		return warn(says+", and cannot listen on "+c.addr+", where pages look for it",
			"its log says why; until then "+
				"pages come only by --chrome, --launch and the extension, unless every serve has another --hub 127.0.0.1:PORT")
	case s.Addr == "":
		return warn(says+", and another program has "+c.addr+", where pages look for it",
			anotherPort)
	case faults != "":
		return warn(says+", and tells agents: "+faults,
			"until this is fixed, agents do not see these pages")
	}
	return ok(says + ", pages find it at " + s.Addr)
}

const anotherPort = "pages now come only by --chrome, --launch and the extension: stop the program that has the " +
	"port, or start every serve with --hub 127.0.0.1:PORT"

// checkExtension checks that a browser can start the native host.
func checkExtension(context.Context, checkup) finding {
	p, err := clientconfig.Here()
	if err != nil {
		return warn(err.Error(), "set HOME")
	}
	all, err := nativehost.Used(p, "")
	if err != nil {
		return ok("no browser here has a profile: the extension is not in use")
	}
	var known []string
	for _, h := range all {
		program, ours, err := h.Host()
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return fail(err.Error(), "mend that, and then: pagewire extension install")
		case !ours:
			return fail(h.File()+" does not name our extension",
				"pagewire extension install --force")
		}
		if info, err := os.Stat(program); err != nil || info.IsDir() {
			return fail(fmt.Sprintf("%s names %s, which is not there", h.File(), program),
				"pagewire extension install --force")
		}
		known = append(known, h.Browser)
	}
	if len(known) == 0 {
		return warn(
			"no browser knows the extension's native host: pages of the extension do not reach agents",
			"pagewire extension install")
	}
	return ok("known to " + strings.Join(slices.Compact(known), ", "))
}

// An agentProgram is one on this computer, and what its settings have of pagewire.
type agentProgram struct {
	clientconfig.Client
	is  clientconfig.State
	err error
}

// programs returns the agent programs on this computer.
func programs() (all []agentProgram) {
	places, err := clientconfig.Here()
	if err != nil {
		return nil // checkExtension reports it
	}
	for _, c := range clientconfig.Clients {
		s := clientconfig.Setup{Client: c, Places: places}
		if is, err := s.State(); s.IsHere() || is.Live > 0 {
			all = append(all, agentProgram{c, is, err})
		}
	}
	return all
}

// again is how an entry gets the path of this program.
func (p agentProgram) again() string {
	return "pagewire config " + p.Name + " --write --force; flags for its serve follow --"
}

func here() clientconfig.Places {
	p, _ := clientconfig.Here() // programs has reported an error
	return p
}

// finding says how a change of a page reaches the program's model.
func (p agentProgram) finding() (f finding) {
	switch todo := "pagewire setup " + p.Name; {
	case p.err != nil:
		f = warn(p.err.Error(), "mend that: until then "+p.Title+
			" may not read its settings, and config refuses them")
	case p.is.Gone != "":
		f = fail(p.File(here())+" starts "+p.is.Gone+", which is not there", p.again())
	case !p.is.Entry:
		f = warn(p.Title+" is not set up", "if its agents are to see pages: "+todo)
	case !p.IsLive():
		f = ok(p.Title +
			" is set up: results of tools say what has changed; nothing else is known that would")
	case p.is.Live < p.is.Parts:
		f = warn(fmt.Sprintf("%s is set up, with %d of the %d parts that tell it of changes", p.Title,
			p.is.Live, p.is.Parts), "to have its model "+p.Says()+": "+todo)
	default:
		f = ok(p.Title + " is set up, and its model is " + p.Says())
	}
	f.Check = p.Name
	return f
}

// checkConnection is the result of all other checks.
func checkConnection(ctx context.Context, c checkup) finding {
	f, _ := connection(ctx, c.addr, nil)
	return f
}

// connection says whether an agent of one of these programs is connected and sees pages; nil are
// the programs that are set up, and any other. If only a page is missing, demo is the address of
// one.
func connection(ctx context.Context, hub string,
	of []clientconfig.Client) (f finding, demo string) {
	others, waits, names := of == nil, "", []string(nil)
	if others { // setup asks ten times a second, and knows whom it waits for
		for _, p := range programs() {
			if p.is.Entry {
				of = append(of, p.Client)
			}
		}
	}
	s, _ := serve.Ask(ctx, hub, versionName()) // checkDaemon reports the error
	for _, a := range s.Who {
		name := cmp.Or(a.Name, "an agent")
		i := slices.IndexFunc(of, func(c clientconfig.Client) bool { return c.Is(a.Name) })
		if i >= 0 {
			name = of[i].Title
		} else if !others {
			continue
		}
		switch a.Pages {
		case 0:
			waits = name + " is connected, but sees no page"
		case 1:
			return ok(name + " is connected; it sees 1 page"), ""
		default:
			return ok(fmt.Sprintf("%s is connected; it sees %d pages", name, a.Pages)), ""
		}
	}
	for _, c := range of {
		names = append(names, c.Title)
	}
	switch at := "http://" + hub + "/demo/"; {
	case waits != "" && s.Addr == "" && len(s.Notices) > 0:
		return warn(waits, anotherPort), ""
	case waits != "":
		if s.Addr != "" { // which takes the daemon a moment
			demo = at
		}
		return warn(waits, strings.Join(append(s.Notices, "open "+at+" in a browser"), " Or ")), demo
	case len(names) == 0:
		return warn("no agent program is set up", "pagewire setup"), ""
	}
	are := map[bool]string{true: " is", false: " are"}[len(names) == 1]
	return warn(strings.Join(names, " and ")+are+" set up, but not connected",
		"start "+strings.Join(names, " or ")+"; if it is running, restart it"), ""
}

func getJSON(ctx context.Context, url string, into any) error {
	r, err := http.NewRequestWithContext(ctx, "GET", url, nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return errors.New(answer.Status)
	}
	return json.NewDecoder(io.LimitReader(answer.Body, 64<<10)).Decode(into)
}
