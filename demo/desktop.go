package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pagewire/pagewire/bridge/gateway/browser/launched"
)

// desktop is the story's last part. An agent outside the page starts the gateway, as a desktop client does by its
// configuration, and sees the same page. The agent is go-sdk's client, and the gateway is the binary that make build
// has written.
func (t *teller) desktop(gateway string, b *launched.Started, url string) (err error) {
	if _, err := t.open(url); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "pagewire-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	// A separate hub, so that the story is the same beside a gateway that runs here already.
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	hub := free.Addr().String()
	free.Close()
	var said bytes.Buffer // read when the process has ended
	command := exec.Command(gateway, "serve", "--hub", hub, "--chrome", b.URL, "--log-level", "warn")
	command.Env = append(os.Environ(), "XDG_CONFIG_HOME="+dir)
	command.Stderr = &said

	ctx, cancel := context.WithTimeout(t.ctx, startDeadline)
	defer cancel()
	updates := make(chan string, 100)
	client := mcp.NewClient(&mcp.Implementation{Name: "demo", Version: "1"}, &mcp.ClientOptions{
		ResourceUpdatedHandler: func(_ context.Context, r *mcp.ResourceUpdatedNotificationRequest) {
			updates <- r.Params.URI
		},
	})
	began := time.Now()
	agent, err := client.Connect(ctx, &mcp.CommandTransport{Command: command}, nil)
	if err != nil {
		return fmt.Errorf("start %s: %w\n%s", gateway, err, said.String())
	}
	defer func() {
		if closeErr := agent.Close(); err == nil && closeErr != nil {
			err = fmt.Errorf("end %s: %w\n%s", gateway, closeErr, said.String())
		}
	}()
	fmt.Fprintln(t.out)
	t.line("desktop", "starts pagewire serve (answers after %.0f ms)", time.Since(began).Seconds()*1000)

	document, n, err := findDocument(ctx, agent)
	if err != nil {
		return err
	}
	t.line("desktop", "listed %d resources of the open tab, among them", n)
	t.line("", "%s", quote(document.Title, 70))
	if err := agent.Subscribe(ctx, &mcp.SubscribeParams{URI: document.URI}); err != nil {
		return fmt.Errorf("the desktop agent subscribes: %w", err)
	}
	return t.change(ctx, agent, document.URI, updates)
}

// findDocument waits for the resource of the document. n is the number of resources.
func findDocument(ctx context.Context, agent *mcp.ClientSession) (document *mcp.Resource, n int, err error) {
	for document == nil {
		n = 0
		for r, err := range agent.Resources(ctx, nil) {
			if err != nil {
				return nil, 0, fmt.Errorf("the desktop agent lists: %w", err)
			}
			if n++; strings.HasSuffix(r.URI, "/document") {
				document = r
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
	return document, n, nil
}

// change types into the document, and reads it after each notification until it has the new text.
func (t *teller) change(ctx context.Context, agent *mcp.ClientSession, uri string, updates <-chan string) error {
	const words = " and jam"
	t.line("person", "types %q", words)
	if err := t.act("type", t.types(words)); err != nil {
		return err
	}
	for {
		select {
		case <-updates:
		case <-ctx.Done():
			return errors.New("the desktop agent was not told of the change")
		}
		r, err := agent.ReadResource(ctx, &mcp.ReadResourceParams{URI: uri})
		if err != nil {
			return fmt.Errorf("the desktop agent reads: %w", err)
		}
		if text := strings.Join(strings.Fields(r.Contents[0].Text), " "); strings.HasSuffix(text, words) {
			t.line("desktop", "was told of %s, read again %s", brief(uri), quoteEnd(text, 32))
			return nil
		}
	}
}
