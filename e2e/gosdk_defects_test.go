package e2e

// What the Go SDK's own server gets wrong where several conversations share a channel, side by side with ours: both
// are sent the same messages, over the same kind of pipe, and each script below says what is wrong with what came
// back. Nothing must be wrong with ours; with the SDK's the defect must still be there, so that the comparison is
// never with a server of the past: when an update of the SDK mends one, its row fails and becomes history.

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pagewire/pagewire/bridge"
	"github.com/pagewire/pagewire/bridge/testkit"
	"github.com/pagewire/pagewire/e2e/home"
)

const (
	uriA = "https://x.test/a" // reads as "a"
	uriB = "https://x.test/b" // whoever subscribes to it changes a, from within
	uriC = "https://x.test/c" // nobody may subscribe to it
	uriE = "https://x.test/e" // reads as the empty text
	uriF = "https://x.test/f" // cannot be read
	uriS = "https://x.test/s" // takes until nobody waits any more

	envelope = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	idOf     = "io.modelcontextprotocol/subscriptionId"
)

// errRefused is why nobody may subscribe to uriC, and errBroken why uriF cannot be read.
var (
	errRefused = errors.New("refused")
	errBroken  = errors.New("broken")
)

// Each script tells what is wrong with the server that it talks to; "" is nothing.
var defects = []struct {
	name   string
	script func(*server) string
}{
	{"01 the second listen on a URI steals the delivery of the first", func(s *server) string {
		s.listen("one", uriA)
		s.listen("two", uriA)
		s.change(uriA)
		s.await("an update of the second listen", updateFor("two"))
		s.settle()
		if s.count(updateFor("one")) == 0 {
			return "the first listen was told of nothing"
		}
		return ""
	}},
	{"01 cancelling the second listen starves the first", func(s *server) string {
		s.listen("one", uriA)
		s.listen("two", uriA)
		s.cancel("two")
		s.settle()
		s.change(uriA)
		s.settle()
		if s.count(updateFor("one")) == 0 {
			return "the first listen was told of nothing"
		}
		return ""
	}},
	{"02 a listen that was cancelled gets its result", func(s *server) string {
		s.listen("one", uriA)
		s.cancel("one")
		s.settle()
		if s.count(answerTo("one")) > 0 {
			return "answered after it was cancelled"
		}
		return ""
	}},
	{"02 a read that was cancelled gets an error with code 0", func(s *server) string {
		s.send(`{"id":"one","method":"resources/read","params":{%s,"uri":%q}}`, envelope, uriS)
		s.settle()
		s.cancel("one")
		s.settle()
		if s.count(answerTo("one")) > 0 {
			return "answered after it was cancelled"
		}
		return ""
	}},
	{"03 the end of the server gives a listen no result", func(s *server) string {
		s.listen("one", uriA)
		s.shutdown()
		s.drain()
		if s.count(func(m msg) bool { return answerTo("one")(m) && m["result"] != nil }) == 0 {
			return "the listen got no result"
		}
		return ""
	}},
	{"04 an update of a listen comes before its acknowledgement", func(s *server) string {
		s.request("one", "subscriptions/listen", `"notifications":{"resourceSubscriptions":[%q,%q]}`, uriA, uriB)
		s.await("the acknowledgement", acknowledgementOf("one"))
		for _, m := range s.all {
			if acknowledgementOf("one")(m) {
				return ""
			}
			if updateFor("one")(m) {
				return "told of a change before it was acknowledged"
			}
		}
		return ""
	}},
	{"05 an empty text is left out", func(s *server) string {
		m := s.ask("one", "resources/read", `"uri":%q`, uriE)
		contents := m.at("result", "contents").([]any)
		if text, ok := contents[0].(map[string]any)["text"]; !ok || text != "" {
			return "contents without text or blob"
		}
		return ""
	}},
	{"06 an error of a handler has code 0", func(s *server) string {
		return codeOf(s.ask("one", "resources/read", `"uri":%q`, uriF), -32603)
	}},
	{"06 a request before the handshake gets an error with code 0", func(s *server) string {
		s.send(`{"id":"one","method":"resources/list"}`)
		return codeOf(s.await("the answer", answerTo("one")), -32600)
	}},
	{"06 initialize after a modern request gets an error with code 0", func(s *server) string {
		s.ask("one", "resources/list", "")
		m := s.initialize()
		if m["result"] == nil {
			return fmt.Sprintf("refused: %v", m["error"])
		}
		return ""
	}},
	{"07 server/discover without a version is a method that is not found", func(s *server) string {
		s.send(`{"id":"one","method":"server/discover","params":{}}`)
		return codeOf(s.await("the answer", answerTo("one")), -32602)
	}},
	{"08 tools/list and prompts/list answer though neither is advertised", func(s *server) string {
		capabilities := s.ask("d", "server/discover", "").at("result", "capabilities").(map[string]any)
		if capabilities["tools"] != nil || capabilities["prompts"] != nil {
			return "they are advertised"
		}
		tools, prompts := codeOf(s.ask("one", "tools/list", ""), -32601),
			codeOf(s.ask("two", "prompts/list", ""), -32601)
		return tools + prompts
	}},
	{"09 a read may be cached by anyone", func(s *server) string {
		if scope := s.ask("one", "resources/read", `"uri":%q`, uriA).at("result", "cacheScope"); scope != "private" {
			return fmt.Sprintf("cacheScope is %v", scope)
		}
		return ""
	}},
	{"09 a legacy result has the members of a modern one", func(s *server) string {
		s.initialize()
		s.send(`{"method":"notifications/initialized"}`)
		s.send(`{"id":"one","method":"resources/list"}`)
		result := s.await("the answer", answerTo("one")).at("result").(map[string]any)
		for _, member := range []string{"resultType", "ttlMs", "cacheScope"} {
			if _, ok := result[member]; ok {
				return "a legacy result has " + member
			}
		}
		return ""
	}},
	{"10 one URI that is refused fails the whole listen", func(s *server) string {
		s.request("one", "subscriptions/listen", `"notifications":{"resourceSubscriptions":[%q,%q]}`, uriA, uriC)
		m := s.await("an acknowledgement or an answer", func(m msg) bool {
			return acknowledgementOf("one")(m) || answerTo("one")(m)
		})
		if answerTo("one")(m) {
			return fmt.Sprintf("refused as a whole: %v", m["error"])
		}
		if honored := fmt.Sprint(m.at("params", "notifications", "resourceSubscriptions")); honored != "["+uriA+"]" {
			return "acknowledged " + honored
		}
		return ""
	}},
}

func TestGoSDKDefects(t *testing.T) {
	t.Parallel()
	numbers := map[string]bool{}
	for _, d := range defects {
		numbers[d.name[:2]] = true
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			if wrong := d.script(ours(t)); wrong != "" {
				t.Errorf("ours: %s", wrong)
			}
			// What a script sees in time depends on the machine, with the SDK's server, which answers as its goroutines
			// come: a defect that does not show at once may show the next time.
			wrong := ""
			for try := 0; try < 5 && wrong == ""; try++ {
				wrong = d.script(theirs(t))
			}
			if wrong == "" {
				t.Error("the SDK's server gets this right by now: take the row out, and say so where the SDK's " +
					"defects are listed")
			} else {
				t.Logf("the SDK's: %s", wrong)
			}
		})
	}
	if len(numbers) != 10 {
		t.Errorf("there are rows for %d defects, want 10", len(numbers))
	}
}

// A server is one that a script talks to, and all that it has said.
type server struct {
	t        *testing.T
	write    io.Writer
	lines    <-chan msg // closed when the server ends
	change   func(uri string)
	shutdown func() // ends the server; it may go on talking meanwhile
	all      []msg
	settled  int
}

// A msg is a message of a server.
type msg map[string]any

// at walks into a message; nil is what is not there.
func (m msg) at(path ...string) any {
	var v any = map[string]any(m)
	for _, name := range path {
		members, _ := v.(map[string]any)
		v = members[name]
	}
	return v
}

func answerTo(id string) func(msg) bool {
	return func(m msg) bool { return m["id"] == id }
}

func updateFor(id string) func(msg) bool {
	return func(m msg) bool {
		return m["method"] == "notifications/resources/updated" && m.at("params", "_meta", idOf) == id
	}
}

func acknowledgementOf(id string) func(msg) bool {
	return func(m msg) bool {
		return m["method"] == "notifications/subscriptions/acknowledged" && m.at("params", "_meta", idOf) == id
	}
}

// codeOf says what is wrong with an answer that should be an error.
func codeOf(m msg, want float64) string {
	if code := m.at("error", "code"); code != want {
		return fmt.Sprintf("code %v, want %v: %v; ", code, want, m)
	}
	return ""
}

// send sends a message; its jsonrpc member is put in.
func (s *server) send(format string, args ...any) {
	s.t.Helper()
	text := `{"jsonrpc":"2.0",` + strings.TrimPrefix(fmt.Sprintf(format, args...), "{") + "\n"
	if _, err := io.WriteString(s.write, text); err != nil {
		s.t.Fatalf("send %s: %v", text, err)
	}
}

// request sends a modern request with those params.
func (s *server) request(id, method, params string, args ...any) {
	s.t.Helper()
	if params != "" {
		params = "," + fmt.Sprintf(params, args...)
	}
	s.send(`{"id":%q,"method":%q,"params":{%s%s}}`, id, method, envelope, params)
}

// ask sends a modern request and returns the answer.
func (s *server) ask(id, method, params string, args ...any) msg {
	s.t.Helper()
	s.request(id, method, params, args...)
	return s.await("the answer to "+method, answerTo(id))
}

func (s *server) initialize() msg {
	s.t.Helper()
	s.send(`{"id":"init","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`)
	return s.await("the answer to initialize", answerTo("init"))
}

// listen opens a listen and waits for its acknowledgement.
func (s *server) listen(id, uri string) {
	s.t.Helper()
	s.request(id, "subscriptions/listen", `"notifications":{"resourceSubscriptions":[%q]}`, uri)
	s.await("the acknowledgement of "+id, acknowledgementOf(id))
}

func (s *server) cancel(id string) {
	s.t.Helper()
	s.send(`{"method":"notifications/cancelled","params":{"requestId":%q}}`, id)
}

// await reads until a message comes that is wanted.
func (s *server) await(what string, wanted func(msg) bool) msg {
	s.t.Helper()
	timeout := time.After(testkit.Patience)
	for {
		select {
		case m, ok := <-s.lines:
			if !ok {
				s.t.Fatalf("the server ended before %s; it said %v", what, s.all)
			}
			s.all = append(s.all, m)
			if wanted(m) {
				return m
			}
		case <-timeout:
			s.t.Fatalf("no %s; it said %v", what, s.all)
		}
	}
}

// settle waits until what was sent before has had its effect: twice over there and back, and time for what a server
// does behind its answers.
func (s *server) settle() {
	s.t.Helper()
	for range 2 {
		s.settled++
		s.ask(fmt.Sprintf("settle%d", s.settled), "resources/list", "")
		time.Sleep(100 * time.Millisecond)
	}
}

// drain reads until the server ends.
func (s *server) drain() {
	s.t.Helper()
	timeout := time.After(testkit.Patience)
	for {
		select {
		case m, ok := <-s.lines:
			if !ok {
				return
			}
			s.all = append(s.all, m)
		case <-timeout:
			s.t.Fatal("the server does not end")
		}
	}
}

// count is how many of the messages so far are wanted ones.
func (s *server) count(wanted func(msg) bool) (n int) {
	for _, m := range s.all {
		if wanted(m) {
			n++
		}
	}
	return n
}

// pipes returns a server's ends of a connection, and the script's end of it.
func pipes(t *testing.T) (*server, *io.PipeReader, *io.PipeWriter) {
	read, theirWriter := io.Pipe()
	theirReader, write := io.Pipe()
	t.Cleanup(func() {
		write.Close()
		read.Close()
	})
	lines := make(chan msg, 1000)
	go func() {
		defer close(lines)
		for scanner := bufio.NewScanner(read); scanner.Scan(); {
			var m msg
			if err := json.Unmarshal(scanner.Bytes(), &m); err != nil {
				t.Errorf("not JSON: %s", scanner.Text())
				return
			}
			lines <- m
		}
	}()
	return &server{t: t, write: write, lines: lines}, theirReader, theirWriter
}

// consent is what both servers' applications say to a subscription.
func consent(uri string, touch func(uri string)) error {
	switch uri {
	case uriB:
		touch(uriA)
	case uriC:
		return errRefused
	}
	return nil
}

// ours is the engine in a home.
func ours(t *testing.T) *server {
	s, r, w := pipes(t)
	h := home.NewAsking(bridge.Options{Name: "ours", Version: "1", Rule: bridge.Rule{Origin: home.Origin}}, consent)
	for uri, text := range map[string]string{uriA: "a", uriB: "b", uriC: "c", uriE: ""} {
		h.Set(uri, text)
	}
	h.Add(uriF, func(context.Context, bridge.Request) (string, error) { return "", errBroken })
	h.Add(uriS, func(ctx context.Context, _ bridge.Request) (string, error) {
		<-ctx.Done()
		return "", ctx.Err()
	})
	s.change, s.shutdown = h.Touch, h.Shutdown
	go h.Serve(r, w)
	return s
}

// theirs is the Go SDK's server, set up as its documentation shows.
func theirs(t *testing.T) *server {
	s, r, w := pipes(t)
	var peer *mcp.Server
	s.change = func(uri string) {
		if err := peer.ResourceUpdated(t.Context(), &mcp.ResourceUpdatedNotificationParams{URI: uri}); err != nil {
			t.Error(err)
		}
	}
	peer = mcp.NewServer(&mcp.Implementation{Name: "theirs", Version: "1"}, &mcp.ServerOptions{
		Logger:       slog.New(slog.DiscardHandler),
		Capabilities: &mcp.ServerCapabilities{Resources: &mcp.ResourceCapabilities{Subscribe: true, ListChanged: true}},
		SubscribeHandler: func(_ context.Context, r *mcp.SubscribeRequest) error {
			return consent(r.Params.URI, s.change)
		},
		UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
	})
	for uri, text := range map[string]string{uriA: "a", uriB: "b", uriC: "c", uriE: ""} {
		peer.AddResource(&mcp.Resource{URI: uri, Name: uri}, func(context.Context, *mcp.ReadResourceRequest) (
			*mcp.ReadResourceResult, error) {
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: uri, Text: text}}}, nil
		})
	}
	peer.AddResource(&mcp.Resource{URI: uriF, Name: uriF}, func(context.Context, *mcp.ReadResourceRequest) (
		*mcp.ReadResourceResult, error) {
		return nil, errBroken
	})
	peer.AddResource(&mcp.Resource{URI: uriS, Name: uriS}, func(ctx context.Context, _ *mcp.ReadResourceRequest) (
		*mcp.ReadResourceResult, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	session, err := peer.Connect(t.Context(), &mcp.IOTransport{Reader: r, Writer: w}, nil)
	if err != nil {
		t.Fatal(err)
	}
	s.shutdown = func() { go session.Close() }
	return s
}
