//go:build look

package docs

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/pagewire/pagewire/bridge/testkit/testcmd"
)

// TestSite makes the manual's site as .github/workflows/manual.yml publishes it: below a path of the
// forge's own, without demos beside it. Each link within the site leads to a file of it, each page
// can be edited, each block of mermaid is a picture, and no page asks another site for anything.
func TestSite(t *testing.T) {
	t.Parallel()
	const base = "/pagewire/"
	dir := t.TempDir()
	build := testcmd.Command("node_modules/.bin/vitepress", "build", "--outDir", dir)
	build.Dir = filepath.Join(root, "demo/docs")
	build.Env = append(os.Environ(), "SITE_BASE="+base)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("vitepress build: %v\n%s", err, out)
	}
	site := os.DirFS(dir)
	pages, err := fs.Glob(site, "*.html")
	if err != nil {
		t.Fatal(err)
	}
	links := regexp.MustCompile(`(?:href|src)="([^"]*)"`)
	followed, drawn := 0, 0
	for _, page := range pages {
		text, err := fs.ReadFile(site, page)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range links.FindAllStringSubmatch(string(text), -1) {
			link, _, _ := strings.Cut(match[1], "#")
			if link == "" || regexp.MustCompile(`^(https?|data|vscode\S*):`).MatchString(link) {
				continue
			}
			followed++
			target := strings.TrimPrefix(path.Join("/", path.Join(base, path.Dir(page)), link), base)
			if strings.HasPrefix(link, "/") {
				target = strings.TrimPrefix(link, base)
			}
			if strings.HasSuffix("/"+target, "/") {
				target += "index.html"
			}
			if _, err := fs.Stat(site, target); err != nil {
				t.Errorf("%s: %s leads to %s, which is not there", page, match[1], target)
			}
		}
		if regexp.MustCompile(`<(?:script|link|img)[^>]+(?:src|href)="https?:|url\(['"]?https?:`).Match(text) {
			t.Errorf("%s fetches something from another site", page)
		}
		source := strings.TrimSuffix(page, ".html") + ".md"
		if page == "index.html" {
			source = "README.md"
		} else if page == "404.html" {
			continue
		}
		blocks := 0
		for _, b := range blocksOf(source, read(t, "demo/docs/"+source)) {
			if b.language == "mermaid" {
				blocks++
			}
		}
		if got := strings.Count(string(text), `<div class="diagram"`); got != blocks {
			t.Errorf("%s has %d blocks of mermaid, and its page %d diagrams", source, blocks, got)
		}
		drawn += blocks
		edited := strings.Contains(string(text), "pagewire/edit/main/demo/docs/"+source)
		if generated := source == "api.md" || source == "cli.md"; edited == generated {
			t.Errorf("%s can be edited: %t", page, edited)
		}
		for _, want := range []string{">v0.", "VPNavBarSearch"} {
			if !strings.Contains(string(text), want) {
				t.Errorf("%s has no %s", page, want)
			}
		}
	}
	if followed < 1000 || drawn == 0 {
		t.Errorf("%d links and %d diagrams: the test sees nothing", followed, drawn)
	}
	t.Logf("%d pages, %d links within the site, %d diagrams", len(pages), followed, drawn)
	// What models read beside them.
	texts, err := fs.Glob(site, "*.md")
	if err != nil || len(texts) < len(pages)-1 {
		t.Errorf("%d texts of %d pages, %v", len(texts), len(pages), err)
	}
	for _, name := range append(texts, "llms.txt") {
		text, err := fs.ReadFile(site, name)
		if err != nil {
			t.Fatal(err)
		}
		_, links := outline(text)
		for _, link := range links {
			file, _, _ := strings.Cut(link, "#")
			if file == "" || strings.Contains(link, ":") {
				continue
			}
			if _, err := fs.Stat(site, file); err != nil {
				t.Errorf("%s: a link to %s, which is not there", name, link)
			}
		}
	}
}
