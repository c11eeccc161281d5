//go:build !js

package main

import (
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

	"github.com/pagewire/pagewire/demo/site"
)

// contentTypes are stated here because the system's table, which package mime asks, differs between systems: some do
// not know .wasm, and WebAssembly.compileStreaming refuses any other type than its own.
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

// openDist opens the directory that make build writes. What it returns follows no link that leads out of it.
func openDist(dir string) (*os.Root, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("%w (run make build first)", err)
	}
	for _, name := range []string{"pagewire.js", filepath.FromSlash(strings.Trim(page, "/")) + "/index.html"} {
		if _, err := root.Stat(name); err != nil {
			root.Close()
			return nil, fmt.Errorf("%s holds no %s (run make build first)", dir, name)
		}
	}
	return root, nil
}

// serveFiles serves the files of dist, and the index.html of its directories, but no listings.
func serveFiles(dist fs.FS) http.Handler {
	files := http.FileServerFS(dist)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			http.Redirect(w, r, page, http.StatusFound)
			return
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
		// What was built a moment ago must be what runs.
		header.Set("Cache-Control", "no-cache")
		// Chromium's own modelContext refuses to work in pages without it.
		header.Set("Origin-Agent-Cluster", "?1")
		files.ServeHTTP(w, r)
	})
}

// withManual serves the manual, too, rendered from the working tree in which dist is.
func withManual(demos http.Handler, dist string) (http.Handler, error) {
	root, err := os.OpenRoot(filepath.Join(dist, ".."))
	if err != nil {
		return nil, err
	}
	manual, err := site.New(root.FS())
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("/", demos)
	mux.Handle(site.Prefix, manual.Handler())
	return mux, nil
}

// listen opens addr; or, if addr is the default and something else has it, any free port.
func listen(addr string) (net.Listener, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil && addr == defaultAddr && errors.Is(err, syscall.EADDRINUSE) {
		return net.Listen("tcp", "127.0.0.1:0")
	}
	return l, err
}
