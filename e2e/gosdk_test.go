package e2e

import (
	"context"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pagewire/pagewire/bridge"
	"github.com/pagewire/pagewire/e2e/home"
)

const stateURI = "https://x.test/state"

// testHome is a home with one resource, and a client's end of a connection to it.
func testHome(t *testing.T) (*home.Home, func() mcp.Transport) {
	h := home.New(bridge.Options{Name: "home", Version: "1", Rule: bridge.Rule{Origin: "https://x.test"}})
	h.Set(stateURI, "first")
	return h, func() mcp.Transport {
		theirs, ours := io.Pipe()
		ourReader, theirWriter := io.Pipe()
		go h.Serve(ourReader, ours)
		return &mcp.IOTransport{Reader: theirs, Writer: theirWriter}
	}
}

// The Go SDK's client, unmodified, over a pipe: list, read, subscribe, updated, unsubscribe.
func TestGoSDKClient(t *testing.T) {
	h, connect := testHome(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	updated, changed := make(chan string, 100), make(chan bool, 100)
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
		ResourceUpdatedHandler:     func(_ context.Context, r *mcp.ResourceUpdatedNotificationRequest) { updated <- r.Params.URI },
		ResourceListChangedHandler: func(context.Context, *mcp.ResourceListChangedRequest) { changed <- true },
	})
	session, err := client.Connect(ctx, connect(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var listed []string
	for r, err := range session.Resources(ctx, nil) {
		if err != nil {
			t.Fatal(err)
		}
		listed = append(listed, r.URI)
	}
	if !slices.Equal(listed, []string{stateURI}) {
		t.Errorf("listed %q", listed)
	}
	read := func() string {
		result, err := session.ReadResource(ctx, &mcp.ReadResourceParams{URI: stateURI})
		if err != nil {
			t.Fatal(err)
		}
		return result.Contents[0].Text
	}
	if text := read(); text != "first" {
		t.Errorf("read %q", text)
	}
	if err := session.Subscribe(ctx, &mcp.SubscribeParams{URI: stateURI}); err != nil {
		t.Fatal(err)
	}
	h.Set(stateURI, "second")
	select {
	case uri := <-updated:
		if uri != stateURI {
			t.Errorf("updated %s", uri)
		}
	case <-ctx.Done():
		t.Fatal("no update")
	}
	if text := read(); text != "second" {
		t.Errorf("read again %q", text)
	}
	h.Set("https://x.test/more", "")
	select {
	case <-changed:
	case <-ctx.Done():
		t.Fatal("no list_changed")
	}
	if err := session.Unsubscribe(ctx, &mcp.UnsubscribeParams{URI: stateURI}); err != nil {
		t.Fatal(err)
	}
	time.Sleep(150 * time.Millisecond)
	h.Set(stateURI, "third")
	select {
	case <-updated:
		t.Error("told of a change after it unsubscribed")
	case <-time.After(200 * time.Millisecond):
	}
	if err := session.Close(); err != nil {
		t.Error(err)
	}
	for end := time.Now().Add(2 * time.Second); h.Stats().Ports > 0 && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	if s := h.Stats(); s.Ports != 0 || s.Subscriptions != 0 || s.Listens != 0 || s.Calls != 0 {
		t.Errorf("left behind: %+v", s)
	}
}
