package endpoint

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// A server card (SEP-2127) tells clients which server is at a URL before they connect. A catalog
// lists the cards of a host. Both are public, and contain only the node's public URL and version.

const (
	cardType    = "application/mcp-server-card+json"
	catalogType = "application/json"
	cardPath    = "/mcp/server-card"
)

// cards serves card and catalog, each at the path in the extension's text and at the path that
// clients request.
func cards(mux *http.ServeMux, publicURL string, public *url.URL, version string) {
	labels := strings.Split(public.Hostname(), ".")
	slices.Reverse(labels)
	host := public.Host
	card := map[string]any{
		"$schema": "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json",
		"name": strings.ReplaceAll(strings.Join(labels, "."), ":", "-") +
			"/pagewire", "version": version,
		// Each has at most 100 characters, and a host's name may have 253.
		"title": limit("Pagewire at " + host), "description": limit("Live state of the pages " +
			"that a user has open of " + host),
		"websiteUrl": publicURL + "/",
		"remotes": []any{map[string]any{"type": "streamable-http", "url": publicURL + "/mcp",
			"supportedProtocolVersions": []string{"2026-07-28", "2025-11-25"}}},
	}
	catalog := map[string]any{"specVersion": "draft", "entries": []any{map[string]any{
		"identifier": "urn:air:" + public.Hostname() +
			":pagewire", "displayName": card["title"], "type": cardType,
		"url": publicURL + cardPath}}}
	for path, its := range map[string]struct {
		kind string
		is   any
	}{
		cardPath: {cardType, card}, "/.well-known/mcp/server-card.json": {cardType, card},
		"/.well-known/mcp/catalog.json": {catalogType,
			catalog}, "/.well-known/ai-catalog.json": {catalogType, catalog},
	} {
		mux.HandleFunc("GET "+path, static(its.kind, its.is))
	}
}

func static(kind string, is any) http.HandlerFunc {
	text, err := json.Marshal(is)
	if err != nil {
		panic(err) // not possible: it has only strings
	}
	sum := sha256.Sum256(text)
	tag := `"` + hex.EncodeToString(sum[:8]) + `"`
	return func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Type", kind)
		if strings.HasPrefix(r.Header.Get("Accept"), "application/json") {
			header.Set("Content-Type", "application/json")
		}
		header.Set("Access-Control-Allow-Origin", "*")
		header.Set("Access-Control-Allow-Methods", "GET")
		header.Set("Cache-Control", "public, max-age=3600")
		header.Set("ETag", tag)
		http.ServeContent(w, r, "", time.Time{}, strings.NewReader(string(text)))
	}
}

func limit(text string) string { return text[:min(len(text), 100)] }
