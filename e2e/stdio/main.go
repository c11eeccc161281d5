// Command stdio serves an engine on its standard input and output, one JSON message per line, so that clients that
// others wrote can start it as they start any MCP server. It is a fixture of tests: what it offers is home.Lively's.
//
// It ends when its input does, and, as a server that goes away, on SIGTERM: then every session is ended in order. It
// writes nothing to its error output and reads no file; with -journal it appends to one that it began and how it
// ended, for tests that count processes.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"

	"github.com/pagewire/pagewire/bridge"
	"github.com/pagewire/pagewire/e2e/home"
)

func main() {
	journal := flag.String("journal", "", "append to this `file` that the process began, and how it ended")
	flag.Parse()
	note(*journal, "began")

	h, stop := home.Lively(bridge.Options{Name: "stdio", Version: "1"})
	defer stop()

	terminated := make(chan os.Signal, 1)
	signal.Notify(terminated, syscall.SIGTERM)
	var asked atomic.Bool
	go func() {
		<-terminated
		asked.Store(true)
		h.Shutdown()
	}()
	if err := h.Serve(os.Stdin, os.Stdout); err != nil {
		note(*journal, "failed")
		os.Exit(1)
	}
	if asked.Load() {
		note(*journal, "terminated")
	} else {
		note(*journal, "ended")
	}
}

// note appends a line to the journal, if there is one.
func note(journal, what string) {
	if journal == "" {
		return
	}
	f, err := os.OpenFile(journal, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		panic(err)
	}
	defer f.Close()
	if _, err := fmt.Fprintln(f, os.Getpid(), what); err != nil {
		panic(err)
	}
}
