package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/pagewire/pagewire/bridge/agents"
	"github.com/pagewire/pagewire/bridge/gateway"
	"github.com/pagewire/pagewire/bridge/pages/socket"
	"github.com/pagewire/pagewire/bridge/weborigin"
)

// contentTypes replaces the system's table, which package mime reads and which differs between
// systems: some do not know .wasm, and WebAssembly.compileStreaming refuses any other type.
var contentTypes = map[string]string{
	".css":  "text/css; charset=utf-8",
	".html": "text/html; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".json": "application/json",
	".map":  "application/json",
	".mjs":  "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
	".ts":   "text/plain; charset=utf-8",
	".wasm": "application/wasm",
}

// openDist opens the directory that make build writes. The Root follows no link that leads out of
// it.
func openDist(dir string) (*os.Root, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("%w (run make build first)", err)
	}
	for _, name := range []string{"pagewire.js", filepath.FromSlash("demo/index.html")} {
		if _, err := root.Stat(name); err != nil {
			root.Close()
			return nil, fmt.Errorf("%s holds no %s (run make build first)", dir, name)
		}
	}
	return root, nil
}

// routes returns the demo's handler. It serves the files of dist, for demo 2 a gateway between page
// and agent, and for demo 5 an MCP server in both eras. The gateway admits only pages of this port;
// closeGateway ends it. /ci leads to the page of the CI run.
func routes(ctx context.Context, dist fs.FS, port int, ciPage string) (h http.Handler,
	closeGateway func()) {
	mux := http.NewServeMux()
	mux.Handle("/ci", http.RedirectHandler(ciPage, http.StatusFound))
	files := serveFiles(dist)
	mux.Handle("/", files)
	mux.HandleFunc(viewsPage, func(w http.ResponseWriter, r *http.Request) {
		// a sandboxed frame's origin is opaque, and its scripts are modules
		w.Header().Set("Access-Control-Allow-Origin", "*")
		files.ServeHTTP(w, r)
	})
	legacy, modern := serveLively(ctx)
	mux.Handle("/mcp/legacy", legacy)
	mux.Handle("/mcp/modern", modern)

	g := gateway.New(gateway.Options{Allow: []string{fmt.Sprintf("http://127.0.0.1:%d", port),
		fmt.Sprintf("http://localhost:%d", port)}})
	pages := socket.New(g, socket.Options{})
	// a closed page does not end its session
	clients := agents.NewHTTP(g, agents.HTTPOptions{Idle: time.Minute})
	mux.Handle("/page", pages)
	mux.Handle("/mcp", ownPages(clients))
	return mux, func() {
		pages.Close()
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = clients.Close(ctx) // after that the agents are cut off
		g.Close()
	}
}

// ownPages admits requests by names of this machine, and from browsers only the demo's own pages.
// The gateway has no secrets, but no other site may read it by a name that resolves to this
// machine.
func ownPages(next http.Handler) http.Handler {
	next = http.NewCrossOriginProtection().Handler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !weborigin.IsLoopback("http://" + r.Host) {
			http.Error(w, "the demo is served at names of this machine alone", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// serveFiles serves the files of dist, and the index.html of its directories, but no listings.
func serveFiles(dist fs.FS) http.Handler {
	files := http.FileServerFS(dist)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			r = r.Clone(r.Context())
			r.URL.Path = "/demo/"
		}
		name := strings.Trim(path.Clean(r.URL.Path), "/")
		if info, err := fs.Stat(dist, name); err == nil && info.IsDir() {
			name = path.Join(name, "index.html")
			if _, err := fs.Stat(dist, name); err != nil {
				http.NotFound(w, r)
				return
			}
		}
		header := w.Header()
		if t := contentTypes[path.Ext(name)]; t != "" {
			header.Set("Content-Type", t)
		}
		header.Set("X-Content-Type-Options", "nosniff")
		// The newest build must run.
		header.Set("Cache-Control", "no-cache")
		// Chromium's own modelContext refuses to work in pages without it.
		header.Set("Origin-Agent-Cluster", "?1")
		files.ServeHTTP(w, r)
	})
}

// listen listens at addr. If addr is a default and in use, it takes any free port.
func listen(addr string) (net.Listener, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil && (addr == defaultAddr || addr == ciAddr) && errors.Is(err, syscall.EADDRINUSE) {
		return net.Listen("tcp", "127.0.0.1:0")
	}
	return l, err
}
