package main

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"mime"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"

	"github.com/evanw/esbuild/pkg/api"
)

// site has the scripts of the pages.
//
//go:embed site
var site embed.FS

func script(name string) []byte {
	text, err := site.ReadFile("site/" + name)
	if err != nil {
		panic(err)
	}
	return text
}

// inline returns elements with scripts of the site. A page that fetched them would be visible
// later.
func inline(names ...string) (html string) {
	for _, name := range names {
		html += "<script>" + string(script(name+".js")) + "</script>"
	}
	return html
}

// A bench is one run. It keeps copies of the built files, so that a build during the run changes
// nothing.
type bench struct {
	short    bool
	chromium context.Context // chromedp's
	dir      string          // of this run's own files
	files    map[string][]byte
	mu       sync.Mutex
	closers  []func()
}

func newBench(short bool) (*bench, error) {
	b := &bench{short: short, files: map[string][]byte{}}
	built := api.Build(api.BuildOptions{
		EntryPoints: []string{"e2e/bench/page/page.ts"},
		Bundle:      true,
		Format:      api.FormatIIFE,
		GlobalName:  "bench",
		Target:      api.ES2022,
	})
	if len(built.Errors) > 0 {
		return nil,
			fmt.Errorf("bundle page.ts: %s (make bench installs the packages)",
				built.Errors[0].Text)
	}
	b.files["/bench.js"] = built.OutputFiles[0].Contents
	for _, name := range []string{"pagewire.js", "pagewire.core.js", "pagewire.wasm",
		"pagewire.worker.js"} {
		text, err := os.ReadFile("dist/" + name)
		if err != nil {
			return nil, fmt.Errorf("%w (make bench builds it)", err)
		}
		b.files["/dist/"+name] = text
	}
	var err error
	if b.dir, err = os.MkdirTemp("", "pagewire-bench-"); err != nil {
		return nil, err
	}
	b.onClose(func() { os.RemoveAll(b.dir) })
	program, err := os.ReadFile("bin/pagewire")
	if err == nil {
		err = os.WriteFile(b.program(), program, 0o755)
	}
	if err == nil {
		// Loaded before the programs of others (gateway.go), which are otherwise unmodified.
		err = os.WriteFile(b.guard(), script("offline.cjs"), 0o644)
	}
	if err != nil {
		b.close()
		return nil, fmt.Errorf("%w (make bench builds it)", err)
	}
	return b, nil
}

func (b *bench) program() string { return filepath.Join(b.dir, "pagewire") }
func (b *bench) guard() string   { return filepath.Join(b.dir, "offline.cjs") }

func (b *bench) onClose(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closers = append(b.closers, f)
}

// close calls the closers, the last first. It may be called twice.
func (b *bench) close() {
	b.mu.Lock()
	closers := b.closers
	b.closers = nil
	b.mu.Unlock()
	for i := len(closers) - 1; i >= 0; i-- {
		closers[i]()
	}
}

// file returns one of the run's files, or one of the files that npm has installed.
func (b *bench) file(name string) ([]byte, error) {
	if text, ok := b.files[name]; ok {
		return text, nil
	}
	if !strings.HasPrefix(name, "/node_modules/") || !fs.ValidPath(name[1:]) {
		return nil, fs.ErrNotExist
	}
	return os.ReadFile("e2e/bench" + name)
}

func (b *bench) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	text, err := b.file(r.URL.Path)
	if err != nil {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", mime.TypeByExtension(path.Ext(r.URL.Path)))
	w.Write(text)
}
