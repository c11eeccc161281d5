package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
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

// checks are in the order in which a page's state travels. Each takes a few seconds at most.
var checks = []struct {
	name string
	run  func(context.Context, checkup) finding
}{
	{"browser", checkBrowser},
	{"debugging", checkDebugging},
	{"page files", checkAssets},
	{"token", checkToken},
	{"daemon", checkDaemon},
	{"extension", checkExtension},
	{"permission", checkPermission},
}

func doctorCommand() *cobra.Command {
	var c checkup
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check the connection between pages and agents",
		Long: "Checks the requirements of pagewire serve on this machine, and says how to fix each problem. It also says\n" +
			"how each installed agent program learns of changes. Each line is ok, warn (there is another way) or fail.\n" +
			"The exit status is 1 if a line is fail.",
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
				all = append(all, programs()...)
				return cmd.Context().Err()
			})
			if err != nil {
				return err
			}
			if err := printFindings(cmd.OutOrStdout(), all, asJSON); err != nil {
				return err
			}
			if failed > 0 {
				return fmt.Errorf("%d of %d checks failed", failed, len(all))
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON array")
	cmd.Flags().StringVar(&c.chrome, "chrome", "auto",
		"DevTools `URL` of the running browser, or auto")
	c.add(cmd)
	cmd.Flags().StringVar(&c.tokenFile, "token-file", "",
		"`file` of the token that agents on HTTP need (default in "+
			"the user's configuration directory)")
	return cmd
}

func printFindings(to io.Writer, all []finding, asJSON bool) error {
	if asJSON {
		_, err := io.WriteString(cli.Visible(to), cli.IndentedJSON(all))
		return err
	}
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
	return ok(fmt.Sprintf("known to %q", known))
}

// programs returns a finding for each installed client. It says how a change of a page reaches the
// client's model.
func programs() (all []finding) {
	p, err := clientconfig.Here()
	if err != nil {
		return nil // checkExtension reports it
	}
	for _, c := range clientconfig.Clients {
		s := clientconfig.Setup{Client: c, Places: p}
		is, err := s.State()
		path := c.File(p)
		if dir := filepath.Dir(path); dir != p.Home {
			path = dir
		}
		if _, missing := os.Stat(path); missing != nil && is.Live == 0 {
			continue // this user has never run the program
		}
		f := findNotifier(c, is, err)
		f.Check = c.Name
		all = append(all, f)
	}
	return all
}

func findNotifier(c clientconfig.Client, is clientconfig.State, err error) finding {
	write, live := "pagewire config "+c.Name+" --write", "pagewire config "+c.Name+" --live"
	if c.IsLive() {
		write = live
	}
	switch {
	case err != nil:
		return warn(err.Error(), "mend that: until then "+c.Title+
			" may not read its settings, and config refuses them")
	case !is.Entry && is.Live == 0:
		return warn(c.Title+" does not know of pagewire",
			"if agents of it are to see pages: "+write)
	case !c.IsLive():
		return ok(c.Title +
			": results of tools say what has changed; nothing else is known that would")
	case !is.Entry:
		return warn(c.Title+" has hooks or a plugin of pagewire, and no entry that starts it", live)
	case is.Live == 0:
		return warn(c.Title+": results of tools alone say what has changed",
			"to have it "+c.Says()+": "+live)
	case is.Live < is.Parts:
		return warn(fmt.Sprintf("%s has %d of the %d parts that tell it of changes", c.Title,
			is.Live, is.Parts), live)
	}
	return ok(c.Title + " is " + c.Says())
}

// checkPermission only informs: a browser does not publish the permissions of its user.
func checkPermission(context.Context, checkup) finding {
	return ok(
		"a public page with data-gateway asks you once whether it may reach this machine (Local Network " +
			"Access); pages of --chrome, --launch and the extension need not ask")
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
