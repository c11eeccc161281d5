// Command demo serves the demo pages, and tells what an agent sees of them.
//
// It serves dist/, which make build writes, on 127.0.0.1, with an index of the demos at /, and a
// gateway for the demos that need one; and at another port the page of a CI run, which knows
// nothing of Pagewire. With a browser, it opens that page, and prints what an agent saw of it that
// started the gateway (bin/pagewire). It then opens the page of demo 1, plays the person who edits
// the page, and prints what the agent console on that page saw.
//
// It never shows what did not happen: each line that it prints was read from a page or an agent.
//
//	go run ./demo           tell the story, then serve until interrupted
//	go run ./demo -once     tell the story, and end: status 0 if all of it happened
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

	"github.com/pagewire/pagewire/bridge/desktop/browser"
	"github.com/pagewire/pagewire/demo/ci"
	"github.com/pagewire/pagewire/demo/step"
)

const (
	// page is where demo 1 is served.
	page = "/demo/1-live-document/"
	// viewsPage is where demo 5 is served, next to its own MCP server.
	viewsPage = "/demo/5-views/"
	// defaultAddr is always the same, so that a tab that stayed open finds the demo again. So is
	// that of the CI run.
	defaultAddr = "127.0.0.1:8151"
	ciAddr      = "127.0.0.1:8152"
)

func main() {
	addr := flag.String("addr", defaultAddr,
		"address to serve at; if the default is taken, any free port")
	story := flag.Bool("story", true, "tell the story; without it only serve")
	once := flag.Bool("once", false, "end after the story, with status 0 if all of it happened")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "demo: unexpected argument %q\n", flag.Arg(0))
		os.Exit(2)
	}

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *addr, *story, *once)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// run serves and tells the story. It returns when ctx ends, or with once at the end of the story.
func run(ctx context.Context, addr string, story, once bool) error {
	root, err := openDist("dist")
	if err != nil {
		return err
	}
	defer root.Close()
	l, err := listen(addr)
	if err != nil {
		return err
	}
	base := "http://" + l.Addr().String()
	other, err := listen(ciAddr)
	if err != nil {
		return err
	}
	site, ciRun := "http://"+other.Addr().String(), ci.New(5*time.Second)
	handler, closeGateway := routes(ctx, root.FS(), l.Addr().(*net.TCPAddr).Port, site+ci.Path)
	defer closeGateway()
	served := make(chan error, 2)
	for l, handler := range map[net.Listener]http.Handler{l: handler, other: ciRun} {
		server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
		go func() { served <- server.Serve(l) }()
		defer server.Close()
	}

	fmt.Printf("demo at %s/\n", base)
	if story {
		fmt.Println()
		err = step.Tell(func() { runStory(ctx, os.Stdout, base, site, ciRun) })
	}
	switch {
	case ctx.Err() != nil:
		if once {
			return errors.New("interrupted")
		}
		return nil
	case once:
		return err
	case errors.Is(err, browser.ErrNone):
		fmt.Printf("The page can be opened in any browser. For the story to be told here: %v.\n",
			err)
	case err != nil:
		fmt.Fprintln(os.Stderr, "demo:", err)
	}

	fmt.Printf(
		"\nOpen %s/ and pick a demo; the manual is at %s/docs/, and the CI run at %s. Ctrl+C ends.\n", base, base,
		site+ci.Path)
	select {
	case <-ctx.Done():
		return nil
	case err := <-served:
		return err
	}
}
