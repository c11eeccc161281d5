// Package docs runs the examples of the documents: each fenced block of README.md and of
// demo/docs/, by the convention in README.md. It opens each page of the manual
// and of the demos in a browser. Only the real things are used: commands are bin/, pages are dist/
// in Chromium, types are TypeScript's. It never changes a document.
package docs

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"
)

const root = "../.."

type block struct {
	file     string // below the root
	line     int
	language string
	words    []string          // of the info string, after the language
	values   map[string]string // likewise
	setup    map[string]string // by language: code that a reader need not see
	code     string
}

func (b block) String() string { return fmt.Sprintf("%s:%d", b.file, b.line) }

func (b block) has(word string) bool { return slices.Contains(b.words, word) }

// skipped reports whether the block cannot run, or not in TestBlocks.
func (b block) skipped() bool { _, is := b.values["no-run"]; return is || b.has("fresh") }

var (
	infoValue = regexp.MustCompile(`([\w-]+)=(?:"([^"]*)"|(\S+))`)
	setupHead = regexp.MustCompile(`(?s)^<!--\s*setup (\w+)\n(.*?)-->\s*$`)
)

func blocksOf(name string, source []byte) (blocks []block) {
	tree := goldmark.New(goldmark.WithExtensions(extension.GFM)).Parser().
		Parse(text.NewReader(source))
	setup := map[string]string{}
	ast.Walk(tree, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering || n.Type() != ast.TypeBlock {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.HTMLBlock:
			if m := setupHead.FindStringSubmatch(lines(n, source)); m != nil {
				setup[m[1]] += m[2]
			}
		case *ast.FencedCodeBlock:
			b := block{file: name, language: string(n.Language(source)),
				values: map[string]string{}, setup: setup,
				code: lines(n, source)}
			at := 0
			if n.Info != nil {
				at = n.Info.Segment.Start
				info := strings.TrimPrefix(string(n.Info.Value(source)), b.language)
				for _, m := range infoValue.FindAllStringSubmatch(info, -1) {
					b.values[m[1]] = m[2] + m[3]
				}
				b.words = strings.Fields(infoValue.ReplaceAllString(info, ""))
			} else if n.Lines().Len() > 0 {
				at = n.Lines().At(0).Start
			}
			b.line = 1 + strings.Count(string(source[:at]), "\n")
			blocks, setup = append(blocks, b), map[string]string{}
		}
		return ast.WalkContinue, nil
	})
	return blocks
}

func lines(n ast.Node, source []byte) string {
	var b strings.Builder
	for i := range n.Lines().Len() {
		line := n.Lines().At(i)
		b.Write(line.Value(source))
	}
	if html, is := n.(*ast.HTMLBlock); is && html.HasClosure() {
		b.Write(html.ClosureLine.Value(source))
	}
	return b.String()
}

// documents returns the files with blocks: README.md and the manual.
func documents(t *testing.T) []string {
	t.Helper()
	// the second has a block of each kind
	names := []string{"README.md", "e2e/docs/testdata/convention.md"}
	err := fs.WalkDir(os.DirFS(root), "demo/docs",
		func(name string, entry fs.DirEntry, err error) error {
			if entry != nil && entry.Name() == "node_modules" {
				return fs.SkipDir
			}
			if err == nil && filepath.Ext(name) == ".md" {
				names = append(names, name)
			}
			return err
		})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	source, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return source
}

var languages = strings.Fields("sh html js ts jsx vue svelte json toml go mermaid text http")

// All words that may follow a language.
var (
	infoWords  = []string{"node", "continues", "fresh", "packed"}
	infoValues = []string{"no-run", "until", "status", "error"}
)

func TestEachBlockIsOfTheConvention(t *testing.T) {
	counts, skipped := map[string]int{}, 0
	for _, name := range documents(t) {
		for _, b := range blocksOf(name, read(t, name)) {
			counts[b.language]++
			if !slices.Contains(languages, b.language) {
				t.Errorf("%v: a block of %q: name one of %v", b, b.language, languages)
			}
			for _, word := range b.words {
				if !slices.Contains(infoWords, word) {
					t.Errorf("%v: the word %q has no meaning behind a language", b, word)
				}
			}
			for value, text := range b.values {
				if !slices.Contains(infoValues, value) || text == "" {
					t.Errorf("%v: %s=%q has no meaning behind a language", b, value, text)
				}
			}
			if b.skipped() {
				skipped++
			}
		}
	}
	t.Logf("blocks by language: %v, of which %d are not run", counts, skipped)
}

// TestBlocks runs all. A file's sh blocks share a directory and run one after the other; others are
// independent.
func TestBlocks(t *testing.T) {
	for _, name := range documents(t) {
		blocks := blocksOf(name, read(t, name))
		t.Run(strings.TrimSuffix(strings.TrimPrefix(name, "demo/docs/"), ".md"),
			func(t *testing.T) {
				t.Parallel()
				runShell(t, blocks)
				for i, b := range blocks {
					switch {
					case b.skipped():
						parseOnly(t, b)
					case b.language == "html", b.language == "js" && !b.has("node"):
						t.Run(fmt.Sprintf("%s line %d", b.language, b.line),
							func(t *testing.T) { runInPage(t, blocks, i) })
					case b.language == "js":
						t.Run(fmt.Sprintf("node line %d", b.line),
							func(t *testing.T) { runInNode(t, b) })
					default:
						parseOnly(t, b)
					}
				}
			})
	}
}

// Errors are found in each language that has a rule of its own.
func TestWhatIsWrongIsSeen(t *testing.T) {
	for language, code := range map[string]string{"json": "{a: 1}", "js": "const", "toml": "a"} {
		if parse(block{language: language, code: code}) == nil {
			t.Errorf("%s: %s is not refused", language, code)
		}
	}
	for code, want := range map[string]string{
		"pagewire serve --lanch":                        "pagewire serve has no option --lanch",
		"npx pagewire sreve":                            "pagewire has no command sreve",
		"make no-such-thing ONCE=1":                     "make has no target no-such-thing",
		"pagewire config cursor -- --chrome auto --nix": "pagewire serve has no option --nix",
		"cat | pagewire node --nix # --not-seen":        "pagewire-node has no option --nix",
		"pagewire extension install --nix":              "pagewire extension install has no option --nix",
	} {
		if got := unknown(t, block{code: code + "\n"}); len(got) != 1 || got[0] != want {
			t.Errorf("%s: %q, want %q", code, got, want)
		}
	}
	fine := "pagewire serve \\\n  --launch && make build\npagewire ls --json | jq .\n"
	if got := unknown(t, block{code: fine}); len(got) != 0 {
		t.Errorf("refused: %q", got)
	}
}
