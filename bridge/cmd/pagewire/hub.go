package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"

	"github.com/pagewire/pagewire/bridge/cmd/internal/cli"
	"github.com/pagewire/pagewire/bridge/desktop/daemon"
	"github.com/pagewire/pagewire/bridge/desktop/serve"
)

// Most commands are clients of the daemon that runs. They never start one.

type hubFlags struct{ addr string }

func (h *hubFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&h.addr, "hub", serve.DefaultHub,
		"`address` with which the pagewire serve that runs was "+
			"started")
}

// client returns a client for the daemon's HTTP server for processes of this user.
func (h *hubFlags) client() *http.Client { return serve.Client(h.addr, versionName()) }

// startOne is the hint if no daemon runs.
const startOne = "start one: pagewire serve --launch, or --chrome auto, in another terminal"

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
	err = errors.New(cli.Plain(about + ": " + strings.TrimSuffix(wire.Message, ": "+about)))
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

// complete completes up to most arguments with names of tools, or else with URIs, from the daemon.
// It is silent without one.
func (h *hubFlags) complete(most int, tools bool) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begun string) (found []string,
		files cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
		defer cancel()
		files = cobra.ShellCompDirectiveNoFileComp
		session, err := h.connect(ctx, &mcp.ClientOptions{})
		if err != nil || len(args) >= most {
			return nil, files
		}
		defer session.Close()
		offer := func(name string) {
			if strings.HasPrefix(name, begun) && isHarmlessWord(name) {
				found = append(found, name)
			}
		}
		if tools {
			for t, err := range session.Tools(ctx, nil) {
				if err == nil {
					offer(t.Name)
				}
			}
			return found, files
		}
		for r, err := range session.Resources(ctx, nil) {
			if err == nil {
				offer(r.URI)
			}
		}
		return found, files
	}
}

// isHarmlessWord reports whether a shell takes a word as it is. Pages choose URIs and names of
// tools, and the shell would run what is in $(...).
func isHarmlessWord(word string) bool {
	const safe = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.:/@%+,=-"
	return word != "" && word[0] != '-' && strings.Trim(word, safe) == ""
}
