package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A line is what the agent said to the gateway, or was told by it.
type line struct {
	Kind string `json:"kind"` // "asks" or "told"
	Text string `json:"text"` // a method of MCP
	Of   string `json:"of"`   // the resource's name
}

// An agent watches the resources of a page, and reads what has changed whenever it is told.
type agent struct {
	session *mcp.ClientSession
	told    chan string

	mu    sync.Mutex
	lines []line
	seen  map[string]string // by the last part of the URI
}

// startAgent starts the gateway as an agent program does, beside a browser that listens at url.
func startAgent(ctx context.Context, gateway, url, dir string) (*agent, error) {
	a := &agent{told: make(chan string, 100), seen: map[string]string{}}
	// In a directory of its own it is alone, whatever other gateway runs on this machine.
	command := exec.Command(gateway, "serve", "--hub", "127.0.0.1:0", "--chrome", url, "--log-level", "warn")
	command.Env = append(os.Environ(), "XDG_CONFIG_HOME="+dir)
	said, err := os.Create(filepath.Join(dir, "gateway.log"))
	if err != nil {
		return nil, err
	}
	defer said.Close()
	command.Stderr = said
	client := mcp.NewClient(&mcp.Implementation{Name: "picture", Version: "1"}, &mcp.ClientOptions{
		ResourceUpdatedHandler: func(_ context.Context, r *mcp.ResourceUpdatedNotificationRequest) {
			a.told <- r.Params.URI
		},
	})
	if a.session, err = client.Connect(ctx, &mcp.CommandTransport{Command: command}, nil); err != nil {
		text, _ := os.ReadFile(said.Name())
		return nil, fmt.Errorf("start %s: %w\n%s", gateway, err, text)
	}
	return a, nil
}

// watch reads and subscribes to resources of the page, by the last part of their URIs.
func (a *agent) watch(ctx context.Context, names ...string) error {
	for _, name := range names {
		uri, err := a.find(ctx, name)
		if err != nil {
			return err
		}
		if err := a.read(ctx, uri); err != nil {
			return err
		}
		if err := a.session.Subscribe(ctx, &mcp.SubscribeParams{URI: uri}); err != nil {
			return fmt.Errorf("the agent subscribes to %s: %w", uri, err)
		}
		a.say("asks", "resources/subscribe", uri)
	}
	return nil
}

// find waits until the page's resource is in the list.
func (a *agent) find(ctx context.Context, name string) (string, error) {
	for {
		for r, err := range a.session.Resources(ctx, nil) {
			if err != nil {
				return "", fmt.Errorf("the agent lists: %w", err)
			}
			if last(r.URI) == name {
				return r.URI, nil
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func (a *agent) read(ctx context.Context, uri string) error {
	r, err := a.session.ReadResource(ctx, &mcp.ReadResourceParams{URI: uri})
	if err != nil {
		return fmt.Errorf("the agent reads %s: %w", uri, err)
	}
	a.say("asks", "resources/read", uri)
	a.mu.Lock()
	a.seen[last(uri)] = r.Contents[0].Text
	a.mu.Unlock()
	return nil
}

// until reads what the agent is told of until a resource holds some text.
func (a *agent) until(ctx context.Context, name, text string) error {
	for !strings.Contains(a.state().seen[name], text) {
		select {
		case uri := <-a.told:
			a.say("told", "notifications/resources/updated", uri)
			if err := a.read(ctx, uri); err != nil {
				return err
			}
		case <-ctx.Done():
			return fmt.Errorf("the agent does not know that %q is in the %s: %w", text, name, ctx.Err())
		}
	}
	return nil
}

func (a *agent) say(kind, text, uri string) {
	a.mu.Lock()
	a.lines = append(a.lines, line{kind, text, last(uri)})
	a.mu.Unlock()
}

// What an agent has said, been told and seen by now.
type known struct {
	lines []line
	seen  map[string]string
}

func (a *agent) state() known {
	a.mu.Lock()
	defer a.mu.Unlock()
	k := known{append([]line(nil), a.lines...), map[string]string{}}
	for name, text := range a.seen {
		k.seen[name] = text
	}
	return k
}

func last(uri string) string { return uri[strings.LastIndexByte(uri, '/')+1:] }
