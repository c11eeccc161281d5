//go:build !js

package site

import (
	"bytes"
	"fmt"
	"html"
	"io/fs"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/alecthomas/chroma/v2"
	chromahtml "github.com/alecthomas/chroma/v2/formatters/html"
	"github.com/alecthomas/chroma/v2/lexers"
	"github.com/alecthomas/chroma/v2/styles"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	unsafehtml "github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// pictures are the files that the site serves besides Markdown, by what their names end with.
var pictures = []string{".png", ".jpg", ".svg", ".gif", ".webp", ".webm", ".mp4"}

// markdown is GitHub's. Raw HTML passes: the repository is ours, and <picture> has no other way.
var markdown = goldmark.New(goldmark.WithExtensions(extension.GFM),
	goldmark.WithParserOptions(parser.WithAutoHeadingID()),
	goldmark.WithRendererOptions(unsafehtml.WithUnsafe(),
		renderer.WithNodeRenderers(util.Prioritized(codeRenderer{}, 100))))

// A heading is one of a page, with its anchor.
type heading struct {
	Level    int
	Text, ID string
	at       int // where its line begins in the file
}

// A page is a rendered file.
type page struct {
	title    string
	html     []byte
	headings []heading
	// broken are the links that lead nowhere, each with what is missing.
	broken []string
}

// contents are the headings that the page lists beside its text.
func (p page) contents() []heading {
	return slices.DeleteFunc(slices.Clone(p.headings), func(h heading) bool { return h.Level != 2 && h.Level != 3 })
}

// parse reads a file. Its anchors are those that the forge makes, so that a link works at both.
func parse(source []byte) (ast.Node, []heading) {
	ids := &anchors{map[string]int{}}
	root := markdown.Parser().Parse(text.NewReader(source), parser.WithContext(parser.NewContext(parser.WithIDs(ids))))
	var headings []heading
	ast.Walk(root, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if h, is := n.(*ast.Heading); is && entering {
			id, _ := h.AttributeString("id")
			name, _ := id.([]byte)
			at := 0
			if h.Lines().Len() > 0 {
				at = h.Lines().At(0).Start
			}
			headings = append(headings, heading{h.Level, plain(h, source), string(name), at})
		}
		return ast.WalkContinue, nil
	})
	return root, headings
}

// plain is the text of a node, without marks.
func plain(n ast.Node, source []byte) string {
	var b strings.Builder
	ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		switch n := n.(type) {
		case *ast.Text:
			if entering {
				b.Write(n.Value(source))
				if n.SoftLineBreak() {
					b.WriteByte(' ')
				}
			}
		case *ast.String:
			if entering {
				b.Write(n.Value)
			}
		case *ast.RawHTML, *ast.HTMLBlock:
			return ast.WalkSkipChildren, nil
		}
		return ast.WalkContinue, nil
	})
	return b.String()
}

// render makes a page of a Markdown file, whose links lead to where the site has what they name.
func (s *Site) render(name string, source []byte) (page, error) {
	root, headings := parse(source)
	p := page{title: path.Base(name), headings: headings}
	if len(headings) > 0 {
		p.title = headings[0].Text
	}
	link := func(to string) string {
		target, err := s.resolve(name, headings, to)
		if err != nil && !slices.Contains(p.broken, err.Error()) {
			p.broken = append(p.broken, err.Error())
		}
		return target
	}
	ast.Walk(root, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if entering {
			switch n := n.(type) {
			case *ast.Link:
				n.Destination = []byte(link(string(n.Destination)))
			case *ast.Image:
				n.Destination = []byte(link(string(n.Destination)))
			}
		}
		return ast.WalkContinue, nil
	})
	var out bytes.Buffer
	if err := markdown.Renderer().Render(&out, source, root); err != nil {
		return p, fmt.Errorf("%s: %w", name, err)
	}
	p.html = dress(out.Bytes(), link)
	return p, nil
}

var (
	rawLink  = regexp.MustCompile(`(<(?:img|source|video|a)\b[^>]*?\s(?:src|srcset|href|poster)=")([^"#/][^":]*)(")`)
	comment  = regexp.MustCompile(`(?s)<!--.*?-->\n?`)
	table    = regexp.MustCompile(`(?s)<table>.*?</table>`)
	heading1 = regexp.MustCompile(`<(h[2-4]) id="([^"]+)">`)
	noHeader = regexp.MustCompile(`<th([^>]*)></th>`)
	plainPre = []byte(`<pre><code>`)
	alert    = regexp.MustCompile(`<blockquote>\s*<p>\[!(NOTE|TIP|IMPORTANT|WARNING|CAUTION)\]\s*`)
)

// dress makes of goldmark's HTML what the site shows: links of raw HTML, tables that scroll by themselves, headings
// that can be linked to, and the forge's alerts. Comments are for writers, and left out.
func dress(out []byte, link func(string) string) []byte {
	out = comment.ReplaceAll(out, nil)
	out = rawLink.ReplaceAllFunc(out, func(m []byte) []byte {
		parts := rawLink.FindSubmatch(m)
		return []byte(string(parts[1]) + link(html.UnescapeString(string(parts[2]))) + string(parts[3]))
	})
	out = table.ReplaceAll(out, []byte(`<div class="wide" tabindex="0" role="group" aria-label="Table">$0</div>`))
	out = noHeader.ReplaceAll(out, []byte(`<td$1></td>`)) // a header without text is none to a screen reader
	out = bytes.ReplaceAll(
		out,
		plainPre,
		[]byte(`<pre class="code" tabindex="0" role="group" aria-label="Code"><code>`),
	)
	out = heading1.ReplaceAll(
		out,
		[]byte(`<$1 id="$2"><a class="anchor" href="#$2" aria-label="Link to this section">#</a>`),
	)
	return alert.ReplaceAllFunc(out, func(m []byte) []byte {
		kind := string(alert.FindSubmatch(m)[1])
		return []byte(`<blockquote class="alert"><p><strong>` + kind[:1] + strings.ToLower(kind[1:]) + `.</strong> `)
	})
}

// resolve says where the site has what a link of a file leads to, and fails if there is no such thing.
func (s *Site) resolve(from string, headings []heading, to string) (string, error) {
	u, err := url.Parse(to)
	if err != nil || u.Scheme != "" || u.Host != "" || strings.HasPrefix(to, "/") {
		return to, err
	}
	if u.Path == "" {
		return to, hasAnchor(from, headings, u.Fragment)
	}
	target := path.Join(path.Dir(from), u.Path)
	info, err := fs.Stat(s.root, target)
	if err != nil {
		return to, fmt.Errorf("%s: a link to %s, which is not there", from, to)
	}
	u.Path = ""
	switch {
	case info.IsDir() && demoFolder.MatchString(target):
		return "/" + target + "/", nil
	case info.IsDir():
		return forge + "tree/main/" + target, nil
	case path.Ext(target) == ".md":
		text, err := fs.ReadFile(s.root, target)
		if err != nil {
			return to, err
		}
		_, there := parse(text)
		return URL(target) + u.String(), hasAnchor(target, there, u.Fragment)
	case slices.Contains(pictures, path.Ext(target)):
		return files + target, nil
	}
	return forge + "blob/main/" + target, nil
}

var demoFolder = regexp.MustCompile(`^demo/\d+-[^/]+$`)

func hasAnchor(file string, headings []heading, id string) error {
	if id == "" || slices.ContainsFunc(headings, func(h heading) bool { return h.ID == id }) {
		return nil
	}
	return fmt.Errorf("%s has no heading #%s, to which a link leads", file, id)
}

// anchors makes the ids of headings as GitHub does: letters, digits, - and _ stay, blanks become -, the rest goes.
type anchors struct{ seen map[string]int }

func (a *anchors) Generate(value []byte, _ ast.NodeKind) []byte {
	id := Anchor(string(value))
	n := a.seen[id]
	a.seen[id]++
	if n > 0 {
		id = fmt.Sprintf("%s-%d", id, n)
	}
	return []byte(id)
}

func (a *anchors) Put(value []byte) { a.seen[string(value)]++ }

var markOfLink = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)

// Anchor is the id of the first heading of a page that has this text, in Markdown.
func Anchor(heading string) string {
	heading = markOfLink.ReplaceAllString(heading, "$1")
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-', r == '_', unicode.IsLetter(r), unicode.IsDigit(r):
			return unicode.ToLower(r)
		}
		return -1
	}, strings.TrimSpace(heading))
}

// codeRenderer writes fenced blocks with the classes of their tokens, so that no script is needed, and the style has
// the colours of both themes.
type codeRenderer struct{}

func (c codeRenderer) RegisterFuncs(to renderer.NodeRendererFuncRegisterer) {
	to.Register(ast.KindFencedCodeBlock, c.render)
}

var formatter = chromahtml.New(chromahtml.WithClasses(true), chromahtml.PreventSurroundingPre(true))

func (codeRenderer) render(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	block := n.(*ast.FencedCodeBlock)
	language := string(block.Language(source))
	var code bytes.Buffer
	for i := range block.Lines().Len() {
		line := block.Lines().At(i)
		code.Write(line.Value(source))
	}
	label := "Output"
	if language != "" && language != "text" {
		label = "Code: " + language
	}
	fmt.Fprintf(w, `<pre class="code" data-language="%s" tabindex="0" role="group" aria-label="%s"><code>`,
		html.EscapeString(language), html.EscapeString(label))
	lexer := lexers.Get(
		map[string]string{"sh": "bash", "jsonc": "json", "idl": "typescript", "text": "plaintext"}[language],
	)
	if lexer == nil {
		if lexer = lexers.Get(language); lexer == nil {
			lexer = lexers.Fallback
		}
	}
	tokens, err := chroma.Coalesce(lexer).Tokenise(nil, code.String())
	if err != nil {
		return ast.WalkStop, err
	}
	if err := formatter.Format(w, styles.Fallback, tokens); err != nil {
		return ast.WalkStop, err
	}
	_, err = w.WriteString("</code></pre>\n")
	return ast.WalkContinue, err
}

var (
	fence    = regexp.MustCompile("(?m)^```.*$")
	codeRow  = regexp.MustCompile("(?m)^\\| (`[^|\n]+) \\| (.+) \\|$\n?")
	codeSpan = regexp.MustCompile("`([^`]+)`")
)

// passages cuts a file at its headings.
func (s *Site) passages(name string, source []byte) []passage {
	_, headings := parse(source)
	var found []passage
	for i, h := range headings {
		end := len(source)
		if i+1 < len(headings) {
			end = headings[i+1].at
		}
		body := source[h.at:end]
		if line := bytes.IndexByte(body, '\n'); line >= 0 {
			body = body[line:]
		}
		body = fence.ReplaceAll(comment.ReplaceAll(body, nil), nil)
		to := URL(name)
		if i > 0 {
			to += "#" + h.ID
		}
		for _, row := range codeRow.FindAllSubmatch(body, -1) {
			for _, span := range codeSpan.FindAllSubmatch(row[1], -1) {
				found = append(found, passage{URL: to + toText(string(span[1]), i > 0), Page: headings[0].Text,
					Title: string(span[1]), Text: words(string(row[2]))})
			}
		}
		found = append(found, passage{URL: to, Page: headings[0].Text, Title: h.Text,
			Text: words(string(codeRow.ReplaceAll(body, nil)))})
	}
	return found
}

// words is Markdown as search shows it.
func words(text string) string {
	text = strings.NewReplacer("|", " ", "`", "", "<br>", " ").Replace(markOfLink.ReplaceAllString(text, "$1"))
	return strings.TrimRight(strings.Join(strings.Fields(text), " "), " #")
}

// toText is what to add to a URL so that a browser goes to a text, and marks it: its longest part without … .
func toText(text string, hasAnchor bool) string {
	part := slices.MaxFunc(strings.Split(text, "…"), func(a, b string) int { return len(a) - len(b) })
	escaped := strings.NewReplacer("-", "%2D", ",", "%2C", "&", "%26").Replace(url.PathEscape(strings.TrimSpace(part)))
	if hasAnchor {
		return ":~:text=" + escaped
	}
	return "#:~:text=" + escaped
}
