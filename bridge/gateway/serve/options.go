//go:build !js

package serve

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"

	"github.com/pagewire/pagewire/bridge/gateway/agents"
	"github.com/pagewire/pagewire/bridge/gateway/browser/launched"
	"github.com/pagewire/pagewire/bridge/gateway/daemon"
	"github.com/pagewire/pagewire/bridge/gateway/weborigin"
)

// DefaultHub is where pages find the daemon.
const DefaultHub = "127.0.0.1:7433"

// Options say what a process serves.
type Options struct {
	// Version is what agents, pages and people are told. Default "0".
	Version string
	// Hub is where pages find the daemon, and tells those who share it from others. Default DefaultHub.
	Hub string
	// Flags are the agent's own: of the one on standard input, else of those on HTTP.
	Flags daemon.Flags
	// Launch is the browser that the agent asks for. nil for none.
	Launch *launched.Options
	// Stdio serves one agent on In and Out; the process ends with it.
	Stdio bool
	In    io.Reader
	Out   io.Writer
	// Start is the command line that starts a daemon.
	Start []string
	// Log receives what happens. Default none. LogFile is where it is, if that is a file. LogLevel is its level, which
	// is lowered to debug while an agent is connected that asks for it. May be nil.
	Log      *slog.Logger
	LogFile  string
	LogLevel *slog.LevelVar

	// What follows is for a process that a person has serve agents over HTTP.

	// HTTP is a further address where agents are served, besides the hub's. "" means none.
	HTTP string
	// AllowHosts are the names, besides those of loopback, by which the ports may be asked: those in the Host header.
	AllowHosts []string
	// NoToken asks no token of agents on loopback that the kernel knows as this user's processes.
	NoToken bool
	// TLSCert and TLSKey are files in PEM for HTTP; without them an address that other machines reach takes
	// InsecureHTTP.
	TLSCert, TLSKey string
	InsecureHTTP    bool
	// Shares bound what one agent on HTTP may have.
	Shares agents.Shares
	// TokenFile is where the token is. Default access.TokenFile.
	TokenFile string
	// AnyScheme is gateway.Options.AnyScheme.
	AnyScheme bool
}

// ErrUsage wraps what is wrong with Options.
var ErrUsage = errors.New("usage")

// check sets defaults, and refuses what makes no sense.
func (o *Options) check() error {
	if o.Hub == "" {
		o.Hub = DefaultHub
	}
	if o.Version == "" {
		o.Version = "0"
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Launch != nil && o.Flags.Chrome != "" {
		return fmt.Errorf("%w: a browser is launched or attached to, not both", ErrUsage)
	}
	if o.Launch != nil && !sharesBrowsers {
		return fmt.Errorf("%w: --launch does not work on this system yet: start a browser with "+
			"--remote-debugging-port=9222 --user-data-dir=DIR, and say --chrome http://127.0.0.1:9222", ErrUsage)
	}
	if host, _, err := net.SplitHostPort(o.Hub); err != nil ||
		!weborigin.IsLoopback("http://"+net.JoinHostPort(host, "1")) {
		return fmt.Errorf("%w: the hub's address must be a loopback address and a port, like %s, and not %q; agents "+
			"elsewhere are served by --http", ErrUsage, DefaultHub, o.Hub)
	}
	return nil
}
