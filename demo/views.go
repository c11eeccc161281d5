package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The server of demo 5: an MCP server of the official Go SDK with three live resources. It knows
// nothing of Views or hosts.

const (
	chartURI = "demo://load"     // changes every two seconds
	tableURI = "demo://machines" // every five
	logURI   = "demo://log"      // every nine
)

// lively has the contents of the server's resources. They depend only on the number of changes, so
// that two readers get the same.
type lively struct {
	mu      sync.Mutex
	changes map[string]int
}

func (l *lively) read(uri string) any {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.changes[uri]
	load := func(at, machine int) int {
		x := float64(at) + 7*float64(machine)
		return int(50 + 28*math.Sin(x/6) + 14*math.Sin(x/1.7))
	}
	switch uri {
	case chartURI:
		points := make([]int, 60)
		for i := range points {
			points[i] = load(n+i, 0)
		}
		return points
	case tableURI:
		type row struct {
			Name  string `json:"name"`
			Load  int    `json:"load"`
			State string `json:"state"`
		}
		var rows []row
		for i, name := range []string{"ada", "grace", "alan", "edsger"} {
			r := row{name, load(3*n, i+1), "calm"}
			if r.Load > 75 {
				r.State = "busy"
			}
			rows = append(rows, r)
		}
		return rows
	default:
		var lines []string
		for i := max(0, n-11); i <= n; i++ {
			lines = append(lines,
				fmt.Sprintf("%04d  %s", i,
					[]string{"backup finished", "3 users signed in", "cache cleared",
						"disk at 61 %", "certificate renewed"}[i%5]))
		}
		return lines
	}
}

// serveLively returns the SDK's handlers for the two eras: one with sessions, one without. Both
// serve the same resources, which change until ctx ends.
func serveLively(ctx context.Context) (legacy, modern http.Handler) {
	l := &lively{changes: map[string]int{}}
	server := mcp.NewServer(&mcp.Implementation{Name: "demo-5", Version: "1"}, &mcp.ServerOptions{
		Capabilities: &mcp.ServerCapabilities{Resources: &mcp.ResourceCapabilities{Subscribe: true}},
		// Each subscription is allowed; the SDK keeps it.
		SubscribeHandler:   func(context.Context, *mcp.SubscribeRequest) error { return nil },
		UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
	})
	for uri, every := range map[string]time.Duration{chartURI: 2 * time.Second,
		tableURI: 5 * time.Second,
		logURI:   9 * time.Second} {
		server.AddResource(&mcp.Resource{URI: uri, Name: uri, MIMEType: "application/json"},
			func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
				text, err := json.Marshal(l.read(uri))
				return &mcp.ReadResourceResult{
						Contents: []*mcp.ResourceContents{
							{URI: uri, MIMEType: "application/json", Text: string(text)}}},
					err
			})
		go func() {
			for tick := time.NewTicker(every); ; {
				select {
				case <-ctx.Done():
					tick.Stop()
					return
				case <-tick.C:
					l.mu.Lock()
					l.changes[uri]++
					l.mu.Unlock()
					// A session that cannot be notified has gone, and ends.
					_ = server.ResourceUpdated(ctx,
						&mcp.ResourceUpdatedNotificationParams{URI: uri})
				}
			}
		}()
	}
	get := func(*http.Request) *mcp.Server { return server }
	return mcp.NewStreamableHTTPHandler(get, nil), mcp.NewStreamableHTTPHandler(get,
		&mcp.StreamableHTTPOptions{Stateless: true})
}
