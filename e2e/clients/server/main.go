// Command server is a gateway with one page in its own process, for clients that others wrote: by stdio, or with -http by
// Streamable HTTP. It ends with its input, on SIGTERM in order, and when whoever started it has gone.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/pagewire/pagewire/bridge/gateway"
	"github.com/pagewire/pagewire/bridge/gateway/serve"
	"github.com/pagewire/pagewire/e2e/clients/page"
)

func main() {
	address := flag.String("http", "", "serve at this `address` instead of stdio")
	token := flag.String("token", "", "ask for this `token`")
	flag.Parse()
	if err := run(*address, *token); err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, "server:", err)
		os.Exit(1)
	}
}

func run(address, token string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	ctx, cancel := serve.Orphaned(ctx)
	defer cancel()
	g := gateway.New(gateway.Options{Version: "1", AnyScheme: true})
	defer g.Close()
	if err := page.Attach(context.WithoutCancel(ctx), g); err != nil {
		return err
	}
	if address == "" {
		return serve.Stdio(ctx, g, os.Stdin, os.Stdout)
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	h := serve.NewHTTP(g, serve.HTTPOptions{Token: token})
	mux := http.NewServeMux()
	mux.Handle("/mcp", h)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		<-ctx.Done()
		end, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		h.Close(end)
		server.Close()
	}()
	fmt.Fprintf(os.Stderr, "http://%s/mcp\n", listener.Addr())
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
