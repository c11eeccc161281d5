package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/pagewire/pagewire/bridge/cmd/internal/cli"
	"github.com/pagewire/pagewire/bridge/desktop/browser"
	"github.com/pagewire/pagewire/bridge/desktop/daemon"
	"github.com/pagewire/pagewire/bridge/desktop/serve"
	"github.com/pagewire/pagewire/bridge/gateway"
)

// Most commands are clients of the daemon that runs. They never start one.

type hubFlags struct{ addr string }

// add adds --hub. Without it, the configuration file says where the daemon is.
func (h *hubFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&h.addr, "hub", serve.DefaultHub,
		"`address` given to the running pagewire serve")
	cmd.PreRunE = func(cmd *cobra.Command, args []string) (err error) {
		if !cmd.Flags().Changed("hub") {
			h.addr, err = configuredHub()
		} else if err := checkHub(h.addr); err != nil {
			return usageError{cmd, err}
		}
		if cmd.Name() == "doctor" { // it shows the mistake
			return nil
		}
		return err
	}
}

func checkHub(addr string) error {
	local, err := address("hub", addr)
	if err == nil && !local {
		err = fmt.Errorf("--hub %q: it must be an address of this machine, such as %s", addr,
			serve.DefaultHub)
	}
	return err
}

// client returns a client for the daemon's HTTP server for processes of this user.
func (h *hubFlags) client() *http.Client { return serve.Client(h.addr, versionName()) }

// startOne is the hint if no daemon runs.
const startOne = "start your agent program, or in another terminal: pagewire serve --launch (and --headless without a display)"

// connect opens a session with the daemon. Its errors have hints.
func (h *hubFlags) connect(ctx context.Context, o *mcp.ClientOptions) (*mcp.ClientSession, error) {
	conn, err := daemon.Dialer{Hub: h.addr}.Dial(ctx,
		daemon.Hello{Version: versionName(), As: daemon.AsCommand})
	if errors.Is(err, daemon.ErrNone) {
		return nil, cli.Hint(err, startOne)
	} else if err != nil {
		return nil, err
	}
	o.Capabilities = &mcp.ClientCapabilities{}
	client := mcp.NewClient(&mcp.Implementation{Name: "pagewire", Version: versionName()}, o)
	// In this version of MCP a subscription is one request and lasts as long as the session.
	lines := &mcp.IOTransport{Reader: conn.Messages(), Writer: conn}
	session, err := client.Connect(ctx, lines,
		&mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		conn.Close()
		return nil, err
	}
	return session, nil
}

// askError returns the error to print when a request about a resource or a tool has failed. If
// there is none, the command lists shows what there is.
func askError(about string, err error, lists string) error {
	var wire *jsonrpc.Error
	if !errors.As(err, &wire) {
		return err
	}
	err = inWords{errors.New(cli.Plain(about + ": " + plain(strings.TrimSuffix(wire.Message, ": "+about))))}
	if wire.Code == -32002 || wire.Code == -32602 {
		return cli.Hint(err, "pagewire "+lists+" lists what there is")
	}
	return err
}

// isAbsent reports whether an error says that no page offers a resource.
func isAbsent(err error) bool {
	var wire *jsonrpc.Error
	return errors.As(err, &wire) && wire.Code == -32002
}

// listening reports whether a program listens at an address.
func listening(ctx context.Context, addr string) bool {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	var dialer net.Dialer
	c, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return false
	}
	c.Close()
	return true
}

// hookTime bounds a hook, since the user's prompt waits for it.
const hookTime = 900 * time.Millisecond

// completionTime bounds a completion, for which a person waits.
const completionTime = 500 * time.Millisecond

// complete completes up to most arguments with what the daemon has of a kind: tools, or resources by
// URI, by origin, or by what --only takes. It is silent without a daemon.
func complete(most int, kind string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begun string) (found []string,
		files cobra.ShellCompDirective) {
		files = cobra.ShellCompDirectiveNoFileComp
		if len(args) >= most {
			return nil, files
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
		defer cancel()
		h := hubFlags{cmd.Flag("hub").Value.String()}
		if !cmd.Flag("hub").Changed {
			h.addr, _ = configuredHub()
		}
		session, err := h.connect(ctx, &mcp.ClientOptions{})
		if err != nil {
			return nil, files
		}
		defer session.Close()
		for _, name := range live(ctx, session, kind) {
			if strings.HasPrefix(name, begun) && isHarmlessWord(name) && !slices.Contains(found, name) {
				found = append(found, name)
			}
		}
		return found, files
	}
}

func live(ctx context.Context, s *mcp.ClientSession, kind string) (names []string) {
	if kind == "tool" {
		for t, err := range s.Tools(ctx, nil) {
			if err == nil {
				names = append(names, t.Name)
			}
		}
		return names
	}
	for r, err := range s.Resources(ctx, nil) {
		if err != nil {
			break
		}
		names = append(names, r.URI)
		if u, err := url.Parse(r.URI); err == nil && kind != "URI" {
			names[len(names)-1] = u.Scheme + "://" + u.Host
		}
		// A title ends with the place, as in (tab 1 of Chrome, profile Work, shop.example).
		if _, profile, is := strings.Cut(r.Title, ", profile "); is && kind == "only" {
			names = append(names, gateway.ProfilePrefix+strings.Split(profile, ", ")[0])
		}
	}
	return names
}

// completeFlags completes values of flags, by what their help calls them. Files are the default.
func completeFlags(cmd *cobra.Command) {
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		values := cobra.NoFileCompletions
		what, _ := pflag.UnquoteUsage(f)
		switch c, is := f.Value.(choice); {
		case is:
			values = cobra.FixedCompletions(c.of, cobra.ShellCompDirectiveNoFileComp)
		case what == "file":
			return
		case what == "directory":
			values = completeDirectories
		case f.Name == "only":
			what = "only"
			fallthrough
		case (what == "URI" || what == "origin") && cmd.Flag("hub") != nil:
			values = complete(math.MaxInt, what)
		case f.Name == "chrome":
			values = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
				running, _ := browser.Running()
				return strings.Fields("auto " + running), cobra.ShellCompDirectiveNoFileComp
			}
		}
		_ = cmd.RegisterFlagCompletionFunc(f.Name, values) // it fails for unknown flags
	})
}

func completeDirectories(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveFilterDirs
}

// isHarmlessWord reports whether a shell takes a word as it is. Pages choose URIs and names of
// tools, and the shell would run what is in $(...).
func isHarmlessWord(word string) bool {
	const safe = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.:/@%+,=-"
	return word != "" && word[0] != '-' && strings.Trim(word, safe) == ""
}
