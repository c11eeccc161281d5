package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pagewire/pagewire/bridge"
	"github.com/pagewire/pagewire/bridge/testkit"
	"github.com/pagewire/pagewire/e2e/home"
)

// The Go SDK's client, unmodified, in both eras, over a pipe and over the stdio of a process: it lists, reads, is told
// of changes, reads again, gives up, stops watching, and leaves nothing behind. The TypeScript clients do the same in
// js/test/stdio.
func TestGoSDKClient(t *testing.T) {
	t.Parallel()
	binary := filepath.Join(t.TempDir(), "stdio")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary,
		"./stdio").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	for _, version := range []string{"2026-07-28", "2025-11-25"} {
		t.Run("pipe/"+version, func(t *testing.T) {
			t.Parallel()
			h, stop := home.Lively(bridge.Options{Name: "pipe", Version: "1"})
			defer stop()
			theirs, ours := io.Pipe()
			ourReader, theirWriter := io.Pipe()
			go h.Serve(ourReader, ours)
			goSDKStory(t, version, &mcp.IOTransport{Reader: theirs, Writer: theirWriter})
			testkit.Eventually(t, "the port is gone with all it held", func() bool {
				s := h.Stats()
				return s.Ports == 0 && s.Subscriptions == 0 && s.Listens == 0 && s.Calls == 0 && s.Watched == 0
			})
		})
		t.Run("stdio/"+version, func(t *testing.T) {
			t.Parallel()
			// TerminateDuration is how long the SDK waits for the process to end by itself before it kills it, so that
			// a process that does not end fails below instead of slowly passing.
			command := exec.CommandContext(t.Context(), binary)
			goSDKStory(t, version, &mcp.CommandTransport{Command: command, TerminateDuration: testkit.Patience})
			if s := command.ProcessState; s == nil || !s.Exited() || s.ExitCode() != 0 {
				t.Errorf("the process did not end by itself when its input did: %v", s)
			}
		})
	}
}

func goSDKStory(t *testing.T, version string, transport mcp.Transport) {
	const clock, pulse, square = home.Origin + "/clock", home.Origin + "/pulse", home.Origin + "/square/12"
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	var told heard
	changed := make(chan bool, 100)
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
		ResourceUpdatedHandler: func(_ context.Context, r *mcp.ResourceUpdatedNotificationRequest) {
			told.add(r.Params.URI)
		},
		ResourceListChangedHandler: func(context.Context, *mcp.ResourceListChangedRequest) { changed <- true },
	})
	session, err := client.Connect(ctx, transport, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	if got := session.InitializeResult().ProtocolVersion; got != version {
		t.Errorf("settled on %s", got)
	}
	list := func() (uris []string) {
		for r, err := range session.Resources(ctx, nil) {
			if err != nil {
				t.Fatal(err)
			}
			uris = append(uris, r.URI)
		}
		return uris
	}
	read := func(uri string) string {
		result, err := session.ReadResource(ctx, &mcp.ReadResourceParams{URI: uri})
		if err != nil {
			t.Fatal(err)
		}
		return result.Contents[0].Text
	}
	number := func(uri string) int {
		n, err := strconv.Atoi(read(uri))
		if err != nil {
			t.Error(err)
		}
		return n
	}

	if got := list(); len(got) != 6 || got[0] != clock || got[1] != pulse {
		t.Errorf("listed %q", got)
	}
	templates, err := session.ListResourceTemplates(ctx, nil)
	if err != nil || len(templates.ResourceTemplates) != 1 ||
		templates.ResourceTemplates[0].URITemplate != home.Origin+"/square/{n}" {
		t.Errorf("templates: %+v, %v", templates, err)
	}
	if got := number(square); got != 144 {
		t.Errorf("the square reads as %d", got)
	}
	before := number(clock)

	// What is not there.
	_, err = session.ReadResource(ctx, &mcp.ReadResourceParams{URI: home.Origin + "/unknown"})
	var failure *jsonrpc.Error
	wantCode := map[string]int64{"2026-07-28": -32602, "2025-11-25": -32002}[version]
	if !errors.As(err, &failure) || failure.Code != wantCode {
		t.Errorf("reading what is not there: %v", err)
	} else {
		var data map[string]string
		if err := json.Unmarshal(failure.Data, &data); err != nil || len(data) != 1 ||
			data["uri"] != home.Origin+"/unknown" {
			t.Errorf("the data of not found is %s", failure.Data)
		}
	}

	// Three subscriptions, which in the modern era are three listens that overlap with that for the list.
	for _, uri := range []string{clock, pulse, square} {
		if err := session.Subscribe(ctx, &mcp.SubscribeParams{URI: uri}); err != nil {
			t.Fatal(err)
		}
	}
	testkit.Eventually(t, "told of all three", func() bool { return told.counts(clock, pulse, square) >= 2 })
	if now := number(clock); now <= before {
		t.Errorf("the clock still reads as %d, after %d", now, before)
	}

	// The list changes.
	if got := read(home.Origin + "/door"); got != "open" {
		t.Errorf("the door is %s", got)
	}
	select {
	case <-changed:
	case <-ctx.Done():
		t.Fatal("not told that the list changed")
	}
	if got := list(); !slices.Contains(got, home.Origin+"/guest") {
		t.Errorf("then listed %q", got)
	}

	// One is stopped: it falls silent, and the others go on.
	unsubscribe := func(uri string) {
		if err := session.Unsubscribe(ctx, &mcp.UnsubscribeParams{URI: uri}); err != nil {
			t.Fatal(err)
		}
	}
	unsubscribe(pulse)
	silent(t, &told, pulse)
	told.forget()
	testkit.Eventually(t, "still told of the others", func() bool { return told.counts(clock, square) >= 2 })
	if told.counts(pulse) != 0 {
		t.Error("told of the pulse after it fell silent")
	}

	// A read is given up.
	slow, giveUp := context.WithCancel(ctx)
	answered := make(chan error)
	go func() {
		_, err := session.ReadResource(slow, &mcp.ReadResourceParams{URI: home.Origin + "/slow"})
		answered <- err
	}()
	time.AfterFunc(50*time.Millisecond, giveUp)
	if err := <-answered; !errors.Is(err, context.Canceled) {
		t.Errorf("the read that was given up: %v", err)
	}
	testkit.Eventually(t, "the reader of slow is told to stop", func() bool {
		return number(home.Origin+"/gave_up") == 1
	})

	unsubscribe(clock)
	unsubscribe(square)
	silent(t, &told, clock, square)
	if err := session.Close(); err != nil {
		t.Error(err)
	}
}

// heard counts what a client has been told of.
type heard struct {
	mu   sync.Mutex
	uris map[string]int
}

func (h *heard) add(uri string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.uris == nil {
		h.uris = map[string]int{}
	}
	h.uris[uri]++
}

func (h *heard) forget() {
	h.mu.Lock()
	defer h.mu.Unlock()
	clear(h.uris)
}

// counts is how often the least heard of those was heard of.
func (h *heard) counts(uris ...string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	least := h.uris[uris[0]]
	for _, uri := range uris {
		least = min(least, h.uris[uri])
	}
	return least
}

// silent waits until nothing more is heard of those, though they change every 50 ms. The SDK says that it stops
// watching behind the caller's back, so silence begins some time after the call.
func silent(t *testing.T, h *heard, uris ...string) {
	t.Helper()
	total := func() (n int) {
		for _, uri := range uris {
			n += h.counts(uri)
		}
		return n
	}
	testkit.Eventually(t, "silence", func() bool {
		before := total()
		time.Sleep(400 * time.Millisecond)
		return total() == before
	})
}
