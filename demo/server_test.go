package main

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fakeDist makes a directory like make build's, next to a file that must never be served.
func fakeDist(t *testing.T) string {
	t.Helper()
	parent := t.TempDir()
	for name, text := range map[string]string{
		"secret.txt":                           "secret",
		"dist/pagewire.js":                     "script",
		"dist/pagewire.mjs":                    "module",
		"dist/pagewire.wasm":                   "\x00asm",
		"dist/demo/index.html":                 "<!doctype html>index",
		"dist/demo/1-live-document/index.html": "<!doctype html>page",
		"dist/demo/1-live-document/style.css":  "body {}",
		"dist/demo/common/style.css":           "body {}",
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

// get calls the handler without a client, which would clean the path.
func get(h http.Handler, path string) *httptest.ResponseRecorder {
	r := httptest.NewRequest("GET", "/", nil)
	r.URL.Path = path
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestServeFiles(t *testing.T) {
	dist := fakeDist(t)
	if err := os.Symlink(filepath.Join("..", "secret.txt"),
		filepath.Join(dist, "link.txt")); err != nil {
		t.Log("no symbolic links here:", err)
	}
	h := serveFake(t, dist)
	for path, contentType := range map[string]string{
		"/":                               "text/html; charset=utf-8",
		"/demo/":                          "text/html; charset=utf-8",
		"/pagewire.js":                    "text/javascript; charset=utf-8",
		"/pagewire.mjs":                   "text/javascript; charset=utf-8",
		"/pagewire.wasm":                  "application/wasm",
		"/demo/1-live-document/style.css": "text/css; charset=utf-8",
		"/demo/../demo/1-live-document/":  "text/html; charset=utf-8",
		// refused, or redirected to the name without the slash
		"//demo//1-live-document//style.css/": "",
		"/../secret.txt":                      "",
		"/demo/../../secret.txt":              "",
		`/..\secret.txt`:                      "",
		"/link.txt":                           "",
		"/missing.js":                         "",
		"/demo/common/":                       "", // no listings
		"/demo/common":                        "",
	} {
		w := get(h, path)
		if contentType == "" {
			if w.Code == http.StatusOK || strings.Contains(w.Body.String(), "secret") {
				t.Errorf("%s: status %d, body %q", path, w.Code, w.Body)
			}
			continue
		}
		for name, want := range map[string]string{
			"Content-Type":           contentType,
			"Cache-Control":          "no-cache",
			"Origin-Agent-Cluster":   "?1",
			"X-Content-Type-Options": "nosniff",
		} {
			if got := w.Header().Get(name); w.Code != http.StatusOK || got != want {
				t.Errorf("%s: status %d, %s is %q, want %q", path, w.Code, name, got, want)
			}
		}
	}
}

// The demos are numbered without gaps. Each page has its number; the index and the demo before link
// to it.
func TestEachDemoIsInTheIndex(t *testing.T) {
	read := func(name string) string {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	demos, err := filepath.Glob("[0-9]*-*")
	if err != nil || len(demos) == 0 {
		t.Fatalf("no demos: %v", err)
	}
	index := read("index.html")
	for i, name := range demos {
		number := i + 1
		if !strings.HasPrefix(name, fmt.Sprintf("%d-", number)) {
			t.Errorf("%s is demo %d", name, number)
		}
		says := fmt.Sprintf("<span>demo %d</span>", number)
		if text := read(filepath.Join(name, "index.html")); !strings.Contains(text, says) {
			t.Errorf("%s does not say that it is demo %d", name, number)
		}
		if !strings.Contains(index, fmt.Sprintf(`<a href="/demo/%s/">`, name)) {
			t.Errorf("the index has no link to %s", name)
		}
		if i > 0 &&
			!strings.Contains(read(filepath.Join(demos[i-1], "index.html")),
				fmt.Sprintf(`href="../%s/"`, name)) {
			t.Errorf("%s does not lead to %s", demos[i-1], name)
		}
	}
	if n := strings.Count(index, `<a href="/demo/`); n != len(demos) {
		t.Errorf("the index has %d links, and there are %d demos", n, len(demos))
	}
}

// Agents may use names of this machine, and no other site may use the gateway.
func TestOwnPages(t *testing.T) {
	h := ownPages(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for _, c := range []struct {
		host, origin string
		want         int
	}{
		{"127.0.0.1:8151", "", http.StatusOK},
		{"localhost:8151", "http://localhost:8151", http.StatusOK},
		{"127.0.0.1:8151", "https://evil.example", http.StatusForbidden},
		{"127.0.0.1:8151", "http://127.0.0.1:9999", http.StatusForbidden},
		{"rebound.example:8151", "", http.StatusForbidden},
	} {
		r := httptest.NewRequest("POST", "http://"+c.host+"/mcp", nil)
		if c.origin != "" {
			r.Header.Set("Origin", c.origin)
		}
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, r); w.Code != c.want {
			t.Errorf("host %s, origin %q: status %d, want %d", c.host, c.origin, w.Code, c.want)
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
	} // otherwise a running demo has it, which is as good
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
