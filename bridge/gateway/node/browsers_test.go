//go:build !js

package node

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/pagewire/pagewire/bridge/gateway"
	"github.com/pagewire/pagewire/bridge/testkit"
)

// hostileWishes are what another process of this user may say.
var hostileWishes = []string{
	`{}`, `[]`, `7`, `null`, `"auto"`, `{"url":""}`, `{"keeper":""}`,
	// What led to a directory that was removed, and what could lead to a socket that is somebody else's.
	`{"url":"ws://127.0.0.1:1/devtools/browser/x","launched":true,"profile":"/tmp/pagewire-browser-evil/../../home/victim/Documents","keeper":"x"}`,
	`{"keeper":"../../tmp/evil"}`, `{"keeper":"/tmp/evil.sock"}`, `{"keeper":"browser-abcdefghijkl/../x"}`,
	`{"keeper":"browser-ABCDEFGHIJKL"}`,
	`{"keeper":"browser-abcdefghijkl","url":"auto"}`, `{"keeper":"browser-abcdefghijkl","inject":true}`,
	// Browsers of other machines, and what is none.
	`{"url":"http://evil.example:9222"}`, `{"url":"ws://evil.example/devtools/browser/x"}`,
	`{"url":"http://127.0.0.1@evil.example:9222"}`,
	`{"url":"http://10.0.0.1:9222"}`, `{"url":"http://0.0.0.0:9222"}`, `{"url":"file:///etc/passwd"}`,
	`{"url":"javascript:1"}`, `{"url":"127.0.0.1:9222"}`, `{"url":"AUTO"}`,
}

func newTestBrowsers(t *testing.T) *browsers {
	t.Helper()
	t.Setenv("XDG_CONFIG_HOME", testkit.ShortDir(t))
	g := gateway.New(gateway.Options{Version: "1"})
	t.Cleanup(g.Close)
	b := newBrowsers(g, Options{Hub: "127.0.0.1:1", Log: slog.New(slog.DiscardHandler)})
	t.Cleanup(func() { b.close(t.Context()) })
	return b
}

func (b *browsers) urls() (all []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.known {
		all = append(all, s.URL+s.Keeper)
	}
	return all
}

func TestWhatJoinersMayNameToTheHub(t *testing.T) {
	b := newTestBrowsers(t)
	post := func(text string) int {
		r := httptest.NewRequest(http.MethodPost, browsersPath, strings.NewReader(text))
		w := httptest.NewRecorder()
		b.ServeHTTP(w, r)
		return w.Code
	}
	for _, text := range append(hostileWishes, "", "{", strings.Repeat(" ", 1<<20)) {
		if code := post(text); code != http.StatusBadRequest {
			t.Errorf("%.100s: %d", text, code)
		}
	}
	const sound = `{"url":"http://localhost:9222","inject":true}`
	if known := b.urls(); len(known) > 0 {
		t.Errorf("known: %v", known)
	}
	for range 2 {
		if code := post(sound); code != http.StatusNoContent {
			t.Errorf("what is sound: %d", code)
		}
	}
	if known := b.urls(); !slices.Equal(known, []string{"http://localhost:9222"}) {
		t.Errorf("known: %v", known)
	}
	for i := range maxWishes {
		post(fmt.Sprintf(`{"url":"http://127.0.0.1:%d"}`, i+1))
	}
	if code := post(`{"url":"auto"}`); code != http.StatusServiceUnavailable || len(b.urls()) > maxWishes {
		t.Errorf("one too many: %d, of %d", code, len(b.urls()))
	}
}

func TestWhatAHubMayNameToJoiners(t *testing.T) {
	b := newTestBrowsers(t)
	text := `[` +
		strings.Join(slices.DeleteFunc(slices.Clone(hostileWishes), func(w string) bool { return w[0] != '{' }), ",") +
		`,{"url":"ws://[::1]:9222/devtools/browser/x"},{"url":"auto","more":1}]`
	b.learn(map[string]string{"browsers": text})
	want := []string{"ws://[::1]:9222/devtools/browser/x", "auto"}
	if known := b.urls(); !slices.Equal(known, want) {
		t.Errorf("known: %v, want %v", known, want)
	}
	for _, text := range []string{"", "{", "7", `[7]`, `[[]]`} {
		b.learn(map[string]string{"browsers": text})
	}
	if known := b.urls(); !slices.Equal(known, want) {
		t.Errorf("known after garbage: %v", known)
	}
	// It passes on what it would take itself, and nothing else.
	shared, err := parseWishes(b.share()["browsers"])
	if err != nil || len(shared) != len(want) {
		t.Errorf("shared: %v, %v", shared, err)
	}
	many := make([]wish, 10*maxWishes)
	for i := range many {
		many[i].URL = fmt.Sprintf("http://127.0.0.1:%d", i+1)
	}
	all, _ := json.Marshal(many)
	b.learn(map[string]string{"browsers": string(all)})
	if n := len(b.urls()); n > maxWishes {
		t.Errorf("%d are known", n)
	}
	// A keeper that there is none of is forgotten, and its name leads nowhere.
	b.learn(map[string]string{"browsers": `[{"keeper":"browser-abcdefghijkl"}]`})
	testkit.Eventually(t, "a keeper that is gone is forgotten", func() bool { return len(b.urls()) == 0 })
}
