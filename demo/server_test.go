//go:build !js

package main

import (
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fakeDist makes a directory like the one that make build writes, beside a file that must never be served.
func fakeDist(t *testing.T) string {
	t.Helper()
	parent := t.TempDir()
	for name, text := range map[string]string{
		"secret.txt":                            "secret",
		"dist/pagewire.js":                      "script",
		"dist/pagewire.mjs":                     "module",
		"dist/pagewire.wasm":                    "\x00asm",
		"dist/demo/1-live-document/index.html":  "<!doctype html>page",
		"dist/demo/1-live-document/style.css":   "body {}",
		"dist/demo/1-live-document/document.js": "document",
	} {
		path := filepath.Join(parent, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(parent, "dist")
}

func serveFake(t *testing.T, dist string) http.Handler {
	t.Helper()
	root, err := openDist(dist)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return serveFiles(root.FS())
}

// get asks without a client, which would clean the path before it asks.
func get(h http.Handler, path string) *httptest.ResponseRecorder {
	r := httptest.NewRequest("GET", "/", nil)
	r.URL.Path = path
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestServeFiles(t *testing.T) {
	h := serveFake(t, fakeDist(t))
	for path, contentType := range map[string]string{
		"/pagewire.js":                        "text/javascript; charset=utf-8",
		"/pagewire.mjs":                       "text/javascript; charset=utf-8",
		"/pagewire.wasm":                      "application/wasm",
		"/demo/1-live-document/":              "text/html; charset=utf-8",
		"/demo/1-live-document/style.css":     "text/css; charset=utf-8",
		"/demo/1-live-document/document.js":   "text/javascript; charset=utf-8",
		"/demo/../demo/1-live-document/":      "text/html; charset=utf-8",
		"//demo//1-live-document//style.css/": "", // redirected to the name without the slash
	} {
		w := get(h, path)
		if contentType == "" {
			if w.Code == http.StatusOK {
				t.Errorf("%s: served, should be redirected or refused", path)
			}
			continue
		}
		if w.Code != http.StatusOK {
			t.Errorf("%s: status %d", path, w.Code)
			continue
		}
		for name, want := range map[string]string{
			"Content-Type":           contentType,
			"Cache-Control":          "no-cache",
			"Origin-Agent-Cluster":   "?1",
			"X-Content-Type-Options": "nosniff",
		} {
			if got := w.Header().Get(name); got != want {
				t.Errorf("%s: %s is %q, want %q", path, name, got, want)
			}
		}
	}
}

func TestServeFilesHome(t *testing.T) {
	w := get(serveFake(t, fakeDist(t)), "/")
	if w.Code != http.StatusFound || w.Header().Get("Location") != page {
		t.Errorf("status %d to %q, want a redirect to %s", w.Code, w.Header().Get("Location"), page)
	}
}

func TestServeFilesRefuses(t *testing.T) {
	dist := fakeDist(t)
	if err := os.Symlink(filepath.Join("..", "secret.txt"), filepath.Join(dist, "link.txt")); err != nil {
		t.Log("no symbolic links here:", err)
	}
	h := serveFake(t, dist)
	for _, path := range []string{
		"/../secret.txt",
		"/demo/../../secret.txt",
		`/..\secret.txt`,
		"/link.txt",
		"/missing.js",
		"/demo/", // no listings
		"/demo",
	} {
		w := get(h, path)
		if w.Code == http.StatusOK || strings.Contains(w.Body.String(), "secret") {
			t.Errorf("%s: status %d, body %q", path, w.Code, w.Body)
		}
	}
}

func TestOpenDistSaysWhatToDo(t *testing.T) {
	for name, dir := range map[string]string{"missing": filepath.Join(t.TempDir(), "dist"), "empty": t.TempDir()} {
		if root, err := openDist(dir); err == nil {
			root.Close()
			t.Errorf("%s: opened", name)
		} else if !strings.Contains(err.Error(), "make build") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestListenFallsBackFromTheDefaultOnly(t *testing.T) {
	taken, err := net.Listen("tcp", defaultAddr)
	if err == nil {
		defer taken.Close()
	} // else a demo that runs has it, which serves as well
	l, err := listen(defaultAddr)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if l.Addr().String() == defaultAddr {
		t.Errorf("listens at %s, which is taken", defaultAddr)
	}
	if other, err := listen(l.Addr().String()); err == nil {
		other.Close()
		t.Errorf("an address that was asked for and is taken gave %s", other.Addr())
	}
}
