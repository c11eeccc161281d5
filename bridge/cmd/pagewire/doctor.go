//go:build !js

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
	"runtime"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"

	"github.com/pagewire/pagewire/bridge/gateway/assets"
	"github.com/pagewire/pagewire/bridge/gateway/browser"
	"github.com/pagewire/pagewire/bridge/gateway/hub"
)

// A finding is a line of what the doctor says.
type finding struct {
	Check  string `json:"check"`
	Status string `json:"status"` // ok, warn, fail
	Says   string `json:"says"`
	Do     string `json:"do,omitempty"`
}

func ok(says string) finding       { return finding{Status: "ok", Says: says} }
func warn(says, do string) finding { return finding{Status: "warn", Says: says, Do: do} }
func fail(says, do string) finding { return finding{Status: "fail", Says: says, Do: do} }

// checkup is what the checks need to know.
type checkup struct {
	hubFlags
	chrome string
}

// checks are all there are, in the order in which a page's state travels. Each takes a few seconds at most.
var checks = []struct {
	name string
	run  func(context.Context, checkup) finding
}{
	{"browser", checkBrowser},
	{"debugging", checkDebugging},
	{"page files", checkAssets},
	{"token", checkToken},
	{"hub", checkHub},
	{"extension", checkExtension},
	{"permission", checkPermission},
}

func doctorCommand() *cobra.Command {
	var c checkup
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Look for what keeps pages and agents apart",
		Long: "Checks what pagewire serve needs on this machine, and says what to do about what is missing. Each\n" +
			"line is ok, warn (something else will do as well) or fail; status 1 if one of them is fail.",
		Example: "  pagewire doctor",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, args []string) error {
			var all []finding
			failed := 0
			for _, check := range checks {
				f := check.run(cmd.Context(), c)
				f.Check = check.name
				if f.Status == "fail" {
					failed++
				}
				all = append(all, f)
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
	cmd.Flags().StringVar(&c.chrome, "chrome", "auto", "DevTools `URL` of the running browser, or auto")
	c.add(cmd)
	return cmd
}

func printFindings(to io.Writer, all []finding, asJSON bool) error {
	if asJSON {
		out := json.NewEncoder(visible{to})
		out.SetEscapeHTML(false)
		out.SetIndent("", "  ")
		return out.Encode(all)
	}
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	for _, f := range all {
		fmt.Fprintf(table, "%s\t%s\t%s\n", f.Status, f.Check, plain(f.Says))
		if f.Do != "" {
			fmt.Fprintf(table, "\t\t→ %s\n", plain(f.Do))
		}
	}
	return table.Flush()
}

func checkBrowser(ctx context.Context, _ checkup) finding {
	path, err := browser.Find()
	switch {
	case errors.Is(err, browser.ErrNone):
		return warn("no Chromium, Chrome, Edge or Brave was found: --launch does not work", "install one (Debian: apt-get install chromium), or set PAGEWIRE_BROWSER to its path")
	case err != nil:
		return fail(err.Error(), "set PAGEWIRE_BROWSER to the path of a browser, or unset it")
	case runtime.GOOS == "windows":
		return ok(path) // where it opens a window instead of telling its version
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "--version")
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	version := strings.TrimSpace(string(out))
	if err != nil || version == "" {
		return fail(fmt.Sprintf("%s does not tell its version: %v", path, err), "try to start it by hand; PAGEWIRE_BROWSER names another")
	}
	return ok(version + ", " + path)
}

func checkDebugging(ctx context.Context, c checkup) finding {
	url := c.chrome
	if url == "auto" {
		found, err := browser.Running()
		if err != nil {
			return warn("no running browser takes connections: --chrome auto does not work", "allow it at chrome://inspect/#remote-debugging (Chrome 144 and later), or use --launch")
		}
		url = found
	}
	if strings.HasPrefix(url, "ws") {
		return ok(url + " (the browser asks you when serve connects)")
	}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	var version struct{ Browser string }
	if err := getJSON(ctx, strings.TrimSuffix(url, "/")+"/json/version", &version); err != nil || version.Browser == "" {
		return fail(fmt.Sprintf("%s is no browser's DevTools: %v", url, err), "start the browser with --remote-debugging-port=9222 --user-data-dir=DIR, a DIR of its own")
	}
	return ok(version.Browser + " at " + url)
}

func checkAssets(context.Context, checkup) finding {
	if _, err := assets.FS(); err != nil {
		return warn("this binary was built without its page files: no --inject, no inspector page", "build it with make build (go build -tags pagewire_assets)")
	}
	return ok("inside this binary")
}

func checkToken(_ context.Context, c checkup) finding {
	path := c.tokenFile
	if path == "" {
		var err error
		if path, err = hub.TokenFile(); err != nil {
			return fail(err.Error(), "set "+hub.TokenFileEnv+" to the path of a file of yours")
		}
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return ok(path + " is made by the first serve")
	}
	if _, err := hub.Token(path); err != nil {
		return fail(err.Error(), "only you may read it: chmod 600 "+path+"; or remove it, and a new one is made")
	}
	return ok(path)
}

func checkHub(ctx context.Context, c checkup) finding {
	token := ""
	if f := checkToken(ctx, c); f.Status == "ok" && !strings.HasSuffix(f.Says, "first serve") {
		token, _ = hub.Token(c.tokenFile) // what it says is that check's
	}
	conn, err := hub.Dial(ctx, c.addr, token)
	switch {
	case err == nil:
		conn.Close()
		ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
		defer cancel()
		session, err := c.connect(ctx, &mcp.ClientOptions{})
		if err != nil {
			return ok("runs at " + c.addr)
		}
		defer session.Close()
		version := session.InitializeResult().ServerInfo.Version
		says := fmt.Sprintf("%s runs at %s", version, c.addr)
		if version != versionName() {
			return warn(says+", and this is "+versionName(), "restart the agents, so that all of them run one version")
		}
		return ok(says)
	case errors.Is(err, hub.ErrNoHub):
		return ok("none runs, and " + c.addr + " is free")
	case errors.Is(err, hub.ErrNotPagewire):
		return fail(err.Error(), "stop what has the port, or give every serve another one: --hub 127.0.0.1:PORT")
	case errors.Is(err, hub.ErrToken):
		return fail(err.Error(), "restart it with the same --token-file")
	}
	return fail(err.Error(), "restart it")
}

func checkExtension(context.Context, checkup) finding {
	home, err := os.UserHomeDir()
	if err != nil {
		return warn(err.Error(), "set HOME")
	}
	return checkHost(home)
}

// checkPermission has nothing to look at: a browser tells nobody what its user has allowed.
func checkPermission(context.Context, checkup) finding {
	return ok("a public page with data-gateway asks you once whether it may reach this machine (Local Network Access); pages of --chrome, --launch and the extension need not ask")
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
