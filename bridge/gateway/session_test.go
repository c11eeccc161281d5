//go:build !js

package gateway

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pagewire/pagewire/bridge"
	"github.com/pagewire/pagewire/bridge/testkit"
	"github.com/pagewire/pagewire/e2e/home"
)

// lineConn is a Conn of one message per line, as home speaks.
type lineConn struct {
	in  *bufio.Reader
	out io.WriteCloser
}

func (c lineConn) Read(context.Context) ([]byte, error) { return c.in.ReadBytes('\n') }

func (c lineConn) Write(_ context.Context, message []byte) error {
	_, err := c.out.Write(append(message[:len(message):len(message)], '\n'))
	return err
}

func (c lineConn) Close() error { return c.out.Close() }

// All agents share one session with a page, whose engine takes 64 reads at once: the others wait their turn. One that is
// given up while it waits never reaches the page.
func TestMoreReadsThanAPageTakes(t *testing.T) {
	g := newGateway(t, Options{})
	hold, reading := make(chan struct{}), make(chan string, 1000)
	h := home.New(bridge.Options{Rule: bridge.Rule{Origin: app}})
	h.Add(app+"/echo/{x}", func(ctx context.Context, r bridge.Request) (string, error) {
		reading <- r.URI
		select {
		case <-hold:
			return strings.TrimPrefix(r.URI, app+"/echo/"), nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	})
	theirs, ours := io.Pipe()
	in, out := io.Pipe()
	go h.Serve(theirs, out)
	if _, err := g.Attach(t.Context(), tabInfo("a"), lineConn{bufio.NewReader(in), ours}); err != nil {
		t.Fatal(err)
	}

	var all sync.WaitGroup
	for agent := range 4 {
		a := openAgent(t, g)
		for n := range 50 {
			all.Go(func() {
				want := fmt.Sprintf("%d.%d", agent, n)
				r, err := a.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: app + "/echo/" + want})
				if err != nil || r.Contents[0].Text != want {
					t.Errorf("read %d of agent %d: %v, %v", n, agent, r, err)
				}
			})
		}
	}
	for range maxAsked {
		<-reading
	}
	testkit.Eventually(t, "all are asked", func() bool { return g.Snapshot().Stats.Calls == 200 })
	ctx, cancel := context.WithCancel(t.Context())
	a := openAgent(t, g)
	all.Go(func() {
		if _, err := a.ReadResource(ctx, &mcp.ReadResourceParams{URI: app + "/echo/late"}); !errors.Is(err, context.Canceled) {
			t.Errorf("the read that is given up: %v", err)
		}
	})
	testkit.Eventually(t, "that one too", func() bool { return g.Snapshot().Stats.Calls == 201 })
	cancel()
	testkit.Eventually(t, "it is given up", func() bool { return g.Snapshot().Stats.Calls == 200 })
	if len(reading) > 0 {
		t.Errorf("the page has been asked for more than %d at once", maxAsked)
	}
	close(hold)
	all.Wait()
	for len(reading) > 0 {
		if uri := <-reading; strings.HasSuffix(uri, "late") {
			t.Error("what was given up has been read")
		}
	}
}

// What a tool says of its progress comes before its result and in order, and no other page may say it.
func TestProgress(t *testing.T) {
	g := newGateway(t, Options{})
	calls := make(chan string) // the tokens, for the other page
	attach := func(tab string, called func(conn Conn, id, token string)) {
		near, far := testkit.Pipe()
		go func() {
			for {
				text, err := far.Read(t.Context())
				if err != nil {
					return
				}
				var m struct {
					ID     json.RawMessage
					Method string
					Params struct {
						Meta struct{ ProgressToken string } `json:"_meta"`
					}
				}
				json.Unmarshal(text, &m)
				result := map[string]string{
					"initialize":               `{"protocolVersion":"2025-11-25","capabilities":{"resources":{},"tools":{}},"serverInfo":{"name":"p","version":"1"}}`,
					"resources/list":           `{"resources":[]}`,
					"resources/templates/list": `{"resourceTemplates":[]}`,
					"tools/list":               `{"tools":[{"name":"work` + tab + `","inputSchema":{"type":"object"}}]}`,
				}[m.Method]
				if m.Method == "tools/call" {
					called(far, string(m.ID), m.Params.Meta.ProgressToken)
				} else if result != "" {
					far.Write(t.Context(), []byte(`{"jsonrpc":"2.0","id":`+string(m.ID)+`,"result":`+result+`}`))
				}
			}
		}()
		if _, err := g.Attach(t.Context(), tabInfo(tab), near); err != nil {
			t.Fatal(err)
		}
	}
	progress := func(conn Conn, token string, n int) {
		conn.Write(t.Context(), fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%q,"progress":%d}}`, token, n))
	}
	attach("A", func(conn Conn, id, token string) {
		calls <- token
		<-calls
		for n := range 10 {
			progress(conn, token, n)
		}
		conn.Write(t.Context(), []byte(`{"jsonrpc":"2.0","id":`+id+`,"result":{"content":[]}}`))
	})
	attach("B", func(conn Conn, id, token string) {
		progress(conn, <-calls, 100) // that of the other page's call
		conn.Write(t.Context(), []byte(`{"jsonrpc":"2.0","id":`+id+`,"result":{"content":[]}}`))
		calls <- ""
	})
	a, err := g.Connect("test")
	if err != nil {
		t.Fatal(err)
	}
	a.Write(t.Context(), []byte(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}`))
	if _, err := a.Read(t.Context()); err != nil {
		t.Fatal(err)
	}
	for round := range 20 {
		a.Write(t.Context(), fmt.Appendf(nil, `{"jsonrpc":"2.0","id":"a%d","method":"tools/call","params":{"name":"workA","_meta":{"progressToken":"t"}}}`, round))
		a.Write(t.Context(), fmt.Appendf(nil, `{"jsonrpc":"2.0","id":"b%d","method":"tools/call","params":{"name":"workB","_meta":{"progressToken":"u"}}}`, round))
		var said []string
		for answers := 0; answers < 2; {
			text, err := a.Read(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			var m struct {
				ID     string
				Params struct{ Progress int }
			}
			if err := json.Unmarshal(text, &m); err != nil {
				t.Fatal(err)
			}
			switch {
			case strings.HasPrefix(m.ID, "a"):
				said = append(said, "result")
				answers++
			case m.ID != "":
				answers++
			default:
				said = append(said, fmt.Sprint(m.Params.Progress))
			}
		}
		if got := strings.Join(said, " "); got != "0 1 2 3 4 5 6 7 8 9 result" {
			t.Errorf("round %d: %s", round, got)
		}
	}
}
