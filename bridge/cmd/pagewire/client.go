//go:build !js

package main

import (
	"context"
	"errors"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"

	"github.com/pagewire/pagewire/bridge/gateway/hub"
	"github.com/pagewire/pagewire/bridge/gateway/mcpconn"
)

// What ls, read and watch have in common: each is an agent of the hub that runs.

type hubFlags struct{ addr string }

func (h *hubFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&h.addr, "hub", hub.DefaultAddr, "`address` with which the pagewire serve that runs was "+
		"started")
}

// startOne is what to do where no gateway runs.
const startOne = "start one: pagewire serve --launch, or --chrome auto, in another terminal"

// connect opens a session with the hub. What it fails with says what to do.
func (h *hubFlags) connect(ctx context.Context, o *mcp.ClientOptions) (*mcp.ClientSession, error) {
	conn, err := hub.Dial(ctx, h.addr, versionName())
	switch {
	case errors.Is(err, hub.ErrNoHub):
		return nil, hintError{err, startOne}
	case errors.Is(err, hub.ErrSilent):
		return nil, hintError{err, "it is stopped, or hangs: another pagewire serve takes its place; if there is " +
			"none, end it and start one"}
	case err != nil:
		return nil, err
	}
	o.Capabilities = &mcp.ClientCapabilities{}
	client := mcp.NewClient(&mcp.Implementation{Name: "pagewire", Version: versionName()}, o)
	// The era in which a subscription is one request, and lasts as long as the session.
	session, err := client.Connect(ctx, mcpconn.Transport(conn),
		&mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		conn.Close()
		return nil, err
	}
	return session, nil
}

// resourceError says in words of ours what an agent is told of a resource.
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

// atLeastOne is oneArgument for commands that take more.
func atLeastOne(name string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return usageError{cmd, errors.New(name + " is missing")}
		}
		return nil
	}
}
