//go:build !js

// Package site serves the manual: the Markdown of demo/docs/ as pages, with search, and the other Markdown files of the
// repository that these link to. It renders a page when it is asked for (2 ms), so that who writes sees each edit by a
// reload. It writes nothing, loads nothing from elsewhere, and serves of the repository only Markdown and pictures.
package site

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"path"
	"regexp"
	"slices"
	"strings"
)

const (
	// Prefix is the path that Handler expects to be served at.
	Prefix = "/docs/"
	// docs is where the manual is in the repository, and index the page that lists the others.
	docs  = "demo/docs/"
	index = docs + "README.md"
	// repository and files are where the site has the repository's other Markdown files, and its pictures.
	repository = Prefix + "repository/"
	files      = Prefix + "files/"
	// forge has everything else.
	forge = "https://github.com/pagewire/pagewire/"
)

//go:embed page.html
var pageHTML string

// A Site is the manual of one working tree.
type Site struct {
	root     fs.FS
	template *template.Template
}

// New makes the site of a repository, given by its root. It fails if that has no manual.
func New(root fs.FS) (*Site, error) {
	if _, err := fs.Stat(root, index); err != nil {
		return nil, fmt.Errorf("%w: the manual needs the root of the repository", err)
	}
	t, err := template.New("page").Parse(pageHTML)
	return &Site{root, t}, err
}

// A Group is what the index has under one heading.
type Group struct {
	Title string
	Pages []Entry
}

// An Entry is a page as the index lists it: its file below the repository's root, and its path in the site.
type Entry struct {
	Title, File, URL string
}

var (
	groupLine = regexp.MustCompile(`^##\s+(.+?)\s*$`)
	entryLine = regexp.MustCompile(`^\s*[-*]\s+(?:\*\*)?\[([^\]]+)\]\(([^)#\s]+\.md)\)`)
)

// Groups returns the manual's pages in the order of the index, which is not among them.
func (s *Site) Groups() ([]Group, error) {
	text, err := fs.ReadFile(s.root, index)
	if err != nil {
		return nil, err
	}
	var groups []Group
	for line := range strings.Lines(string(text)) {
		if m := groupLine.FindStringSubmatch(line); m != nil {
			groups = append(groups, Group{Title: m[1]})
		}
		m := entryLine.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		file := path.Join(path.Dir(index), m[2])
		if !strings.HasPrefix(file, docs) {
			continue
		}
		if len(groups) == 0 {
			groups = []Group{{Title: "Pages"}}
		}
		g := &groups[len(groups)-1]
		g.Pages = append(g.Pages, Entry{strings.ReplaceAll(m[1], "`", ""), file, URL(file)})
	}
	return slices.DeleteFunc(groups, func(g Group) bool { return len(g.Pages) == 0 }), nil
}

// Pages returns the files of the manual: the index, then what it lists, then what it forgets.
func (s *Site) Pages() ([]string, error) {
	groups, err := s.Groups()
	if err != nil {
		return nil, err
	}
	pages := []string{index}
	for _, g := range groups {
		for _, p := range g.Pages {
			pages = append(pages, p.File)
		}
	}
	err = fs.WalkDir(s.root, strings.TrimSuffix(docs, "/"), func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && path.Ext(name) == ".md" && !slices.Contains(pages, name) {
			pages = append(pages, name)
		}
		return err
	})
	return pages, err
}

// URL is where the site has a Markdown file, by its path below the repository's root.
func URL(file string) string {
	name, ours := strings.CutPrefix(file, docs)
	if !ours {
		return repository + file
	}
	if name == "README.md" {
		return Prefix
	}
	return Prefix + strings.TrimSuffix(name, ".md")
}

// file is the reverse of URL; "" if url is of no Markdown file.
func file(url string) string {
	if name, found := strings.CutPrefix(url, repository); found {
		return onlyExt(name, ".md")
	}
	name := strings.TrimPrefix(url, Prefix)
	if name == "" {
		return index
	}
	return docs + name + ".md"
}

func onlyExt(name string, extensions ...string) string {
	if slices.Contains(extensions, path.Ext(name)) && fs.ValidPath(name) && !strings.Contains("/"+name, "/.") &&
		!strings.Contains(name, "node_modules") {
		return name
	}
	return ""
}

// Handler serves the site below Prefix.
func (s *Site) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+Prefix+"search.json", s.serveSearch)
	mux.HandleFunc("GET "+files, s.serveFile)
	mux.HandleFunc("GET "+Prefix, s.servePage)
	return mux
}

func (s *Site) serveFile(w http.ResponseWriter, r *http.Request) {
	name := onlyExt(strings.TrimPrefix(r.URL.Path, files), pictures...)
	if name == "" {
		http.NotFound(w, r)
		return
	}
	http.ServeFileFS(w, r, s.root, name)
}

// A view is what page.html shows.
type view struct {
	Title, Lead, URL, Edit string
	Body                   template.HTML
	Headings               []heading
	Groups                 []Group
	Previous, Next         *Entry
}

func (s *Site) servePage(w http.ResponseWriter, r *http.Request) {
	name := file(r.URL.Path)
	text, err := fs.ReadFile(s.root, name)
	if name == "" || !fs.ValidPath(name) || err != nil {
		// A manual's page under its file's name: as the links in the Markdown have it.
		if plain, found := strings.CutSuffix(r.URL.Path, ".md"); found && !strings.HasPrefix(plain, repository) {
			http.Redirect(w, r, plain, http.StatusFound)
			return
		}
		http.NotFound(w, r)
		return
	}
	out, err := s.show(name, text)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-cache")
	w.Header().
		Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "+
			"img-src 'self' data:; media-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'")
	w.Write(out)
}

// show renders a file as a whole page.
func (s *Site) show(name string, text []byte) ([]byte, error) {
	rendered, err := s.render(name, text)
	if err != nil {
		return nil, err
	}
	groups, err := s.Groups()
	if err != nil {
		return nil, err
	}
	v := view{Title: rendered.title, URL: URL(name), Edit: forge + "blob/main/" + name, Groups: groups,
		Body: template.HTML(rendered.html), Headings: rendered.contents()}
	all := []Entry{{"Contents", index, Prefix}}
	for _, g := range groups {
		all = append(all, g.Pages...)
	}
	if at := slices.IndexFunc(all, func(e Entry) bool { return e.File == name }); at >= 0 {
		if at > 0 {
			v.Previous = &all[at-1]
		}
		if at+1 < len(all) {
			v.Next = &all[at+1]
		}
	}
	var out bytes.Buffer
	err = s.template.Execute(&out, v)
	return out.Bytes(), err
}

// A passage is what search finds: the text under one heading of a page, or a row of a table that begins with code.
type passage struct {
	ID    int    `json:"id"`
	URL   string `json:"url"` // with the heading's anchor; of a row with its text, which browsers then mark
	Page  string `json:"page"`
	Title string `json:"title"`
	Text  string `json:"text"`
}

func (s *Site) serveSearch(w http.ResponseWriter, _ *http.Request) {
	pages, err := s.Pages()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	passages := []passage{}
	for _, name := range pages {
		text, err := fs.ReadFile(s.root, name)
		if errors.Is(err, fs.ErrNotExist) {
			continue // the index is ahead of whoever writes the page
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		passages = append(passages, s.passages(name, text)...)
	}
	for i := range passages {
		passages[i].ID = i
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-cache")
	json.NewEncoder(w).Encode(passages)
}
