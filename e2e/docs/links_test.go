package docs

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"

	"github.com/pagewire/pagewire/bridge/testkit/testcmd"
)

// TestLinksOfTheDocuments follows each link of each Markdown file, to an existing file and an
// existing heading of it.
func TestLinksOfTheDocuments(t *testing.T) {
	list := testcmd.Command("git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		t.Fatalf("git ls-files: %v", err)
	}
	seen := 0
	for name := range strings.FieldsSeq(string(out)) {
		if _, err := os.Stat(filepath.Join(root, name)); err != nil ||
			strings.Contains(name, "testdata/") {
			continue
		}
		_, links := outline(read(t, name))
		for _, link := range links {
			file, anchor, _ := strings.Cut(link, "#")
			if strings.Contains(link, ":") || strings.HasPrefix(link, "/") {
				continue
			}
			seen++
			target := name
			if file != "" {
				target = path.Join(path.Dir(name), file)
			}
			if _, err := os.Stat(filepath.Join(root, target)); err != nil {
				t.Errorf("%s: a link to %s, which is not there", name, link)
			} else if anchor != "" && path.Ext(target) == ".md" {
				if anchors, _ := outline(read(t, target)); !slices.Contains(anchors, anchor) {
					t.Errorf("%s: a link to %s, and there is no such heading", name, link)
				}
			}
		}
	}
	if seen < 100 {
		t.Errorf("%d links: the test sees nothing", seen)
	}
}

// forge is where the repository's files are to be.
const forge = "https://github.com/pagewire/pagewire/blob/main/"

// TestLinksOfThePackage packs the npm package. Its README is shown where no other file of the package
// is, so its links are absolute; the manual in it may link to itself. A link to the repository leads
// to an existing file and heading.
func TestLinksOfThePackage(t *testing.T) {
	dir := t.TempDir()
	pack := testcmd.Command("npm", "pack", "--offline", "--pack-destination", dir)
	pack.Dir = filepath.Join(root, "dist/npm")
	if out, err := pack.CombinedOutput(); err != nil {
		t.Fatalf("npm pack (run make build): %v\n%s", err, out)
	}
	packed, err := filepath.Glob(filepath.Join(dir, "*.tgz"))
	if err != nil || len(packed) != 1 {
		t.Fatalf("npm packs %q, %v", packed, err)
	}
	if out, err := testcmd.Command("tar", "-xzf", packed[0], "-C", dir).CombinedOutput(); err != nil {
		t.Fatalf("tar: %v\n%s", err, out)
	}
	in := os.DirFS(filepath.Join(dir, "package"))
	texts, err := fs.Glob(in, "docs/*.md")
	if err != nil || len(texts) < 20 {
		t.Fatalf("the package has %q, %v", texts, err)
	}
	ours, own := 0, 0
	for _, name := range append(texts, "docs/llms.txt", "README.md") {
		text, err := fs.ReadFile(in, name)
		if err != nil {
			t.Fatal(err)
		}
		_, links := outline(text)
		for _, link := range links {
			where, anchor, _ := strings.Cut(link, "#")
			if file, is := strings.CutPrefix(where, forge); is {
				ours++
				if _, err := os.Stat(filepath.Join(root, file)); err != nil {
					t.Errorf("%s: a link to %s, which is not there", name, link)
				} else if anchor != "" {
					if anchors, _ := outline(read(t, file)); !slices.Contains(anchors, anchor) {
						t.Errorf("%s: a link to %s, and there is no such heading", name, link)
					}
				}
			} else if where != "" && !strings.Contains(where, ":") {
				own++
				if _, err := fs.Stat(in, path.Join(path.Dir(name), where)); err != nil || name == "README.md" {
					t.Errorf("%s: a link to %s, which leads nowhere from there (%v)", name, link, err)
				}
			} else if name == "README.md" && where == "" {
				t.Errorf("%s: a link to %s, which a registry need not have", name, link)
			}
		}
	}
	if ours < 30 || own < 100 {
		t.Errorf("%d links to the repository, %d within: the test sees nothing", ours, own)
	}
	t.Logf("%d texts: %d links to the repository, %d within the package", len(texts)+2, ours, own)
}

// outline returns a Markdown file's anchors, made as GitHub makes them, and its links.
func outline(source []byte) (anchors, links []string) {
	tree := goldmark.New(goldmark.WithExtensions(extension.GFM)).Parser().
		Parse(text.NewReader(source))
	times := map[string]int{}
	ast.Walk(tree, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Heading:
			id := strings.Map(func(r rune) rune {
				switch {
				case r == ' ':
					return '-'
				case r == '-', r == '_', unicode.IsLetter(r), unicode.IsDigit(r):
					return unicode.ToLower(r)
				}
				return -1
			}, plain(n, source))
			if times[id]++; times[id] > 1 {
				id = fmt.Sprintf("%s-%d", id, times[id]-1)
			}
			anchors = append(anchors, id)
		case *ast.Link:
			links = append(links, string(n.Destination))
		case *ast.Image:
			links = append(links, string(n.Destination))
		}
		return ast.WalkContinue, nil
	})
	return anchors, links
}

func plain(n ast.Node, source []byte) string {
	var b strings.Builder
	ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if t, is := n.(*ast.Text); is && entering {
			b.Write(t.Value(source))
		}
		return ast.WalkContinue, nil
	})
	return b.String()
}
