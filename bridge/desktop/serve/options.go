package serve

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pagewire/pagewire/bridge/agents"
	"github.com/pagewire/pagewire/bridge/desktop/browser/launched"
	"github.com/pagewire/pagewire/bridge/desktop/daemon"
	"github.com/pagewire/pagewire/bridge/gateway"
	"github.com/pagewire/pagewire/bridge/internal/parts"
	"github.com/pagewire/pagewire/bridge/node/uplink"
	"github.com/pagewire/pagewire/bridge/weborigin"
)

// DefaultHub is the address at which pages find the daemon.
const DefaultHub = "127.0.0.1:7433"

// Options configure a process.
type Options struct {
	// Version is shown to agents, pages and people. Default "0".
	Version string
	// Hub is the address at which pages find the daemon. Processes with the same hub share a
	// daemon. Default DefaultHub.
	Hub string
	// Flags are the flags of the agent on standard input, or, without Stdio, of all agents on HTTP.
	Flags daemon.Flags
	// Launch asks for the browser that the daemon launches. nil does not.
	Launch *daemon.Launch
	// Stdio serves one agent on In and Out. The process ends when this agent leaves.
	Stdio bool
	In    io.Reader
	Out   io.Writer
	// Start is the command line that starts a daemon.
	Start []string
	// Log receives the log. Default none. LogFile is its path, if it is a file. LogLevel is its
	// level. It is debug while an agent with Flags.Debug is connected. LogLevel may be nil.
	Log      *slog.Logger
	LogFile  string
	LogLevel *slog.LevelVar

	// The options below are for Foreground.

	// HTTP is an additional address for agents, besides the hub's. "" means none.
	HTTP string
	// AllowHosts are host names that clients may use for the ports, besides loopback's.
	AllowHosts []string
	// NoToken admits agents on loopback without a token, if the kernel says that they are this
	// user's processes.
	NoToken bool
	// TLSCert and TLSKey are PEM files for HTTP. Without them an address that other machines reach
	// needs InsecureHTTP.
	TLSCert, TLSKey string
	InsecureHTTP    bool
	// Shares are the bounds of one agent on HTTP.
	Shares agents.Shares
	// TokenFile is the path of the token. Default access.TokenFile.
	TokenFile string
	// Node configures the sending of pages to the user's own node. nil sends none.
	Node *uplink.Options
	// AnyScheme is gateway.Options.AnyScheme.
	AnyScheme bool
}

// ErrUsage is wrapped by errors about the Options.
var ErrUsage = errors.New("usage")

// check sets defaults, and refuses contradictions.
func (o *Options) check() error {
	o.Hub, o.Version = cmp.Or(o.Hub, DefaultHub), cmp.Or(o.Version, "0")
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	if o.Node != nil {
		o.Node.Version, o.Node.Log = o.Version, o.Log
		o.Node.Deny, o.Node.Shown = o.Flags.DenyOrigins, o.Flags.Shown
		if err := o.Node.Check(); err != nil {
			return fmt.Errorf("%w: %w", ErrUsage, err)
		}
	}
	o.Flags.Opened = nil
	if o.Launch != nil {
		o.Launch.Display = launched.HasDisplay()
		o.Flags.Opened = originsOf(o.Launch.Open)
		if o.Flags.Chrome != "" {
			return fmt.Errorf("%w: a browser is launched or attached to, not both", ErrUsage)
		}
		if err := checkLaunch(*o.Launch); err != nil {
			return fmt.Errorf("%w: %w", ErrUsage, err)
		}
	}
	if host, _, err := net.SplitHostPort(o.Hub); err != nil ||
		!weborigin.IsLoopback("http://"+net.JoinHostPort(host, "1")) {
		return fmt.Errorf(
			"%w: the hub's address must be a loopback address and a port, like %s, and not %q; agents "+
				"elsewhere are served by --http", ErrUsage, DefaultHub, o.Hub)
	}
	return nil
}

// originsOf returns the origins of addresses, as browsers write them. Addresses of none are left
// out.
func originsOf(addresses []string) (origins []string) {
	for _, address := range addresses {
		u, err := url.Parse(address)
		if err != nil {
			continue
		}
		port := map[string]string{"http": ":80", "https": ":443"}[u.Scheme]
		origin := u.Scheme + "://" + strings.ToLower(strings.TrimSuffix(u.Host, port))
		if port != "" && u.Host != "" && !strings.Contains(u.Host, "*") &&
			!slices.Contains(origins, origin) {
			origins = append(origins, origin)
		}
	}
	return origins
}

// scope returns the options of an agent with these flags.
func (o *Options) scope(f daemon.Flags) gateway.AgentOptions {
	if o.AnyScheme {
		f.AllowOrigins = nil // a list of origins would exclude URIs without an origin
	}
	if f.PartsFile != "" { // a pick may have added to it since the agent began
		if rules, err := parts.Read(f.PartsFile); err == nil {
			f.Parts = rules
		}
	}
	return gateway.AgentOptions{Allow: f.AllowOrigins, Deny: f.DenyOrigins, Only: f.OnlyOrigins,
		Shown: f.Shown, Opened: f.Opened, Parts: f.Parts, PartsFile: f.PartsFile,
		Reminders: gateway.Reminders(f.Reminders), DebuggingTools: f.DebuggingTools, Front: f.Front,
		NoPageTools: f.NoPageTools, NoSubscriptions: f.NoSubscriptions}
}

// comeBack is the time before a new daemon admits pages. In it the former daemon's agents bring the
// tabs' numbers, which takes some 20 ms.
const comeBack = 100 * time.Millisecond

// schemes are those of the addresses that are opened. Others, such as mailto, would start programs.
var schemes = []string{"http", "https", "file", "data", "about"}

// checkLaunch returns an error for a request that no browser gets.
func checkLaunch(o daemon.Launch) error {
	for _, address := range o.Open {
		u, err := url.Parse(address)
		if err != nil || !slices.Contains(schemes, u.Scheme) {
			return fmt.Errorf("--open %.80q: want an address such as https://shop.example", address)
		}
	}
	if _, err := strconv.ParseUint(cmp.Or(o.DebugPort, "0"), 10, 16); err != nil {
		return fmt.Errorf("--debug-port %.80q: want a port such as 9222, or 0 for any", o.DebugPort)
	}
	return nil
}
