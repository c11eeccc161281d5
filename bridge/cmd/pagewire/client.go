package main

import (
	"context"
	"errors"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"

	"github.com/pagewire/pagewire/bridge/gateway/daemon"
	"github.com/pagewire/pagewire/bridge/gateway/serve"
)

// ls, read and watch are clients of a running daemon, and start none.

type hubFlags struct{ addr string }

func (h *hubFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&h.addr, "hub", serve.DefaultHub, "`address` with which the pagewire serve that runs was "+
		"started")
}

// client makes requests to the HTTP server that the daemon has for processes of this user.
func (h *hubFlags) client() *http.Client { return serve.Client(h.addr, versionName()) }

// startOne is the hint if no daemon runs.
const startOne = "start one: pagewire serve --launch, or --chrome auto, in another terminal"

// connect opens a session with the daemon. Its errors have hints.
func (h *hubFlags) connect(ctx context.Context, o *mcp.ClientOptions) (*mcp.ClientSession, error) {
	conn, err := daemon.Dialer{Hub: h.addr}.Dial(ctx, daemon.Hello{Version: versionName(), As: daemon.AsCommand})
	if errors.Is(err, daemon.ErrNone) {
		return nil, hintError{err, startOne}
	} else if err != nil {
		return nil, err
	}
	o.Capabilities = &mcp.ClientCapabilities{}
	client := mcp.NewClient(&mcp.Implementation{Name: "pagewire", Version: versionName()}, o)
	// In this version a subscription is one request, and lasts as long as the session.
	lines := &mcp.IOTransport{Reader: conn.Messages(), Writer: conn}
	session, err := client.Connect(ctx, lines, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		conn.Close()
		return nil, err
	}
	return session, nil
}

// resourceError is the message for an error of a request for a resource.
func resourceError(uri string, err error) error {
	var wire *jsonrpc.Error
	if !errors.As(err, &wire) {
		return err
	}
	err = errors.New(plain(uri + ": " + wire.Message))
	if wire.Code == -32002 || wire.Code == -32602 {
		return hintError{err, "pagewire ls lists what there is"}
	}
	return err
}
