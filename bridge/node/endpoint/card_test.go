package endpoint

import (
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"testing"
)

func TestServerCard(t *testing.T) {
	p := openPlace(t, 1)
	get := func(path, accept string, into any) *http.Response {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, public+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Accept", accept)
		answer, err := p.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		if err := json.NewDecoder(answer.Body).Decode(into); err != nil || answer.StatusCode != http.StatusOK ||
			answer.Header.Get("Access-Control-Allow-Origin") != "*" || answer.Header.Get("ETag") == "" {
			t.Errorf("%s: %s, %v, %v", path, answer.Status, answer.Header, err)
		}
		return answer
	}
	for _, path := range []string{"/mcp/server-card", "/.well-known/mcp/server-card.json"} {
		var card struct {
			Name, Version, Title, Description string
			Remotes                           []struct {
				Type, URL string
				Versions  []string `json:"supportedProtocolVersions"`
			}
		}
		answer := get(path, "*/*", &card)
		if answer.Header.Get("Content-Type") != "application/mcp-server-card+json" ||
			!regexp.MustCompile(`^[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+$`).MatchString(card.Name) ||
			card.Name != "example.live/pagewire" || card.Version == "" || len(card.Description) > 100 ||
			len(card.Remotes) != 1 || card.Remotes[0].URL != public+"/mcp" ||
			!slices.Contains(card.Remotes[0].Versions, "2026-07-28") {
			t.Errorf("%s is %+v (%v)", path, card, answer.Header)
		}
		if answer := get(path, "application/json", &card); answer.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s to a client that wants JSON: %v", path, answer.Header)
		}
	}
	for _, path := range []string{"/.well-known/mcp/catalog.json", "/.well-known/ai-catalog.json"} {
		var catalog struct{ Entries []struct{ URL, Type string } }
		if get(path, "*/*", &catalog); len(catalog.Entries) != 1 || catalog.Entries[0].URL != public+cardPath {
			t.Errorf("%s is %+v", path, catalog)
		}
	}
	// The resource itself stays as it is.
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, public+"/mcp", nil)
	if answer, err := p.RoundTrip(r); err != nil || answer.StatusCode != http.StatusUnauthorized {
		t.Errorf("GET /mcp without a token: %v, %v", answer, err)
	}
}
